/* User objects: a reference count with a destructor, and the references that graphs hold. */
#include <stdlib.h>

#include "tests/softgpu/driver/graph.h"

/* A CUuserObject. Gone when the last reference is. */
struct sg_user_object {
	CUhostFn destroy;
	void *data;
	unsigned references;
};

static struct sg_user_object *object_of(CUuserObject handle)
{
	return sg_is(handle, SG_USER_OBJECT) ? (struct sg_user_object *)handle : NULL;
}

/* With the lock held, which is dropped while the destructor runs. */
static void drop(struct sg_user_object *object, unsigned count)
{
	object->references -= count;
	if (object->references > 0)
		return;
	sg_remove(object);
	sg_unlock();
	object->destroy(object->data);
	free(object);
	sg_lock();
}

void sg_user_objects_drop(struct sg_user_reference *references)
{
	while (references != NULL) {
		struct sg_user_reference *next = references->next;
		drop(references->object, references->count);
		free(references);
		references = next;
	}
}

bool sg_user_objects_clone(const struct sg_user_reference *references, struct sg_user_reference **ret_clone)
{
	for (; references != NULL; references = references->next) {
		struct sg_user_reference *fresh = malloc(sizeof(*fresh));
		if (fresh == NULL)
			return false;
		*fresh = (struct sg_user_reference){references->object, references->count, *ret_clone};
		references->object->references += references->count;
		*ret_clone = fresh;
	}
	return true;
}

CUresult sg_cuUserObjectCreate(CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount,
                               unsigned int flags)
{
	if (object_out == NULL || destroy == NULL || initialRefcount == 0 || initialRefcount > INT32_MAX ||
	    flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
		return CUDA_ERROR_INVALID_VALUE;
	struct sg_user_object *object = malloc(sizeof(*object));
	if (object == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*object = (struct sg_user_object){destroy, ptr, initialRefcount};
	sg_lock();
	bool added = sg_add(object, SG_USER_OBJECT);
	sg_unlock();
	if (!added) {
		free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*object_out = (CUuserObject)object;
	return CUDA_SUCCESS;
}

CUresult sg_cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_user_object *object = object_of(handle);
	if (object != NULL && count > 0 && count <= INT32_MAX - object->references) {
		object->references += count;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

CUresult sg_cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_user_object *object = object_of(handle);
	if (object != NULL && count > 0 && count <= object->references) {
		drop(object, count);
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	return status;
}

/* CU_GRAPH_USER_OBJECT_MOVE hands over references of the caller's; without it the graph takes new ones. */
CUresult sg_cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count, unsigned int flags)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;
	struct sg_user_reference *fresh = malloc(sizeof(*fresh));

	if (fresh == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	sg_lock();
	struct sg_graph *graph = sg_graph_of(handle);
	struct sg_user_object *object = object_of(object_handle);
	bool move = flags == CU_GRAPH_USER_OBJECT_MOVE;
	if (graph != NULL && object != NULL && count > 0 && (flags == 0 || move) &&
	    (move ? count <= object->references : count <= INT32_MAX - object->references)) {
		if (!move)
			object->references += count;
		*fresh = (struct sg_user_reference){object, count, graph->user_references};
		graph->user_references = fresh;
		fresh = NULL;
		status = CUDA_SUCCESS;
	}
	sg_unlock();
	free(fresh);
	return status;
}

CUresult sg_cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count)
{
	CUresult status = CUDA_ERROR_INVALID_VALUE;

	sg_lock();
	struct sg_graph *graph = sg_graph_of(handle);
	struct sg_user_object *object = object_of(object_handle);
	for (struct sg_user_reference **link = graph != NULL ? &graph->user_references : NULL;
	     link != NULL && *link != NULL; link = &(*link)->next) {
		struct sg_user_reference *reference = *link;
		if (object == NULL || reference->object != object || count == 0 || count > reference->count)
			continue;
		reference->count -= count;
		if (reference->count == 0) {
			*link = reference->next;
			free(reference);
		}
		drop(object, count);
		status = CUDA_SUCCESS;
		break;
	}
	sg_unlock();
	return status;
}
