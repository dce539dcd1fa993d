/* Scanning kernel parameters, shared by launches and graph nodes. */
#ifndef CUCONST_EFFECTS_LAUNCHES_H
#define CUCONST_EFFECTS_LAUNCHES_H

#include "shim/effects/call.h"

/* How many launches were made while something was protected, in this process. A launch's own number is what it made this. */
uint64_t launch_serial(void);

/* Numbers a launch. */
void launch_number(struct call *call);

/* One parameter of `size` bytes. Adds a slot to the call for each aligned 8-byte slot that holds an address in a protected range. */
void launch_scan_param(struct call *call, const struct function_info *info, int argument, const void *bytes, size_t size);

/* A whole parameter block, laid out as info says; as one parameter, numbered -1, when the layout is not known. */
void launch_scan_block(struct call *call, const struct function_info *info, const void *block, size_t size);

/* The block of an `extra` list; false: there is none. */
bool launch_extra_block(void **extra, const void **ret_block, size_t *ret_size);

#endif
