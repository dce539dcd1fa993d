/* Looks into a quiet registry: does the tree keep its own promises? */
#ifndef CUCONST_TESTS_UNIT_REGISTRY_CHECK_H
#define CUCONST_TESTS_UNIT_REGISTRY_CHECK_H

#include "registry/registry.h"

/*
 * NULL, or which promise is broken: order, least starts, greatest ends, fill, padding, depth, number of ranges,
 * bounds.
 */
const char *check_registry(const struct registry *reg);

/* Levels above the leaves. */
unsigned check_height(const struct registry *reg);

#endif
