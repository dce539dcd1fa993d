/* The order in which an update pairs the nodes of two graphs. */
#ifndef CUCONST_EFFECTS_GRAPH_ORDER_H
#define CUCONST_EFFECTS_GRAPH_ORDER_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/driver.h"

/*
 * Sorts the nodes of one graph, as cuGraphGetNodes() lists them, into an order that follows from the graph's shape and not from when each
 * node was added: each after its dependencies, these in the order of its edges, and sinks in the order of the list. That is what
 * cuGraphExecUpdate() requires to be alike in both graphs. False, and the list as it was: no memory, or the driver does not tell edges.
 */
bool graph_order(CUgraphNode *nodes, size_t count);

#endif
