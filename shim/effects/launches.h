/* Scanning kernel parameters, shared by launches and graph nodes. */
#ifndef CUCONST_EFFECTS_LAUNCHES_H
#define CUCONST_EFFECTS_LAUNCHES_H

#include "shim/effects/call.h"

/* A grid that starts while the one before it still runs may have read an address before that one wrote it through another mapping. NULL: it cannot. */
static inline bool launch_may_overlap(const CUlaunchConfig *config)
{
	for (unsigned i = 0; config && config->attrs && i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION &&
		    config->attrs[i].value.programmaticStreamSerializationAllowed)
			return true;
	return false;
}

/*
 * The parameters of one kernel. Adds a slot to the call for each aligned 8-byte slot that holds an address in a protected range and may be stored through, and
 * now and then for one beside a range (verdict/neighbours.h). Slots that are only read add nothing. call->deferred: nothing runs now.
 */
void launch_scan(struct call *call, CUfunction function, void **params, void **extra);

/* A kernel that is recorded to run later: of interest only where it may be refused. Sets call->deferred. */
void launch_scan_deferred(struct call *call, CUfunction function, void **params, void **extra);

/* Is something protected, and the mode deny? */
bool launch_may_refuse(void);

/*
 * A whole parameter block, laid out as info says; as one parameter, numbered -1, when the layout is not known. `paths` are launch_paths_for() it. No driver call:
 * the caller has seen to call->deferred.
 */
void launch_scan_block(struct call *call, const struct function_info *info, const struct kernel_paths *paths,
                       const void *block, size_t size);

/* Does the block hold an address in, or beside, a protected range? */
bool launch_concerns(const void *block, size_t size);

/* Store paths of a function, read at the first question: calls the driver. NULL: no memory, or not to be asked for. */
const struct kernel_paths *launch_paths(const struct function_info *info);
/* ... with these values in its parameters. */
const struct kernel_paths *launch_paths_for(const struct function_info *info, const void *block, size_t size);

/* The block of an `extra` list; false: there is none. */
#define LAUNCH_BLOCK_MAX 32768 /* no parameter block is larger */
bool launch_extra_block(void **extra, const void **ret_block, size_t *ret_size);

#endif
