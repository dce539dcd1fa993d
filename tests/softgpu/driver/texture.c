/*
 * Texture and surface objects: what kernels read texels of. Point sampling alone: a filter's arithmetic is the
 * hardware's own.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/softgpu/driver/array.h"
#include "tests/softgpu/driver/memory.h"
#include "tests/softgpu/driver/probe.h"

enum { LINE_MAX_TEXELS = 1 << 28, PITCH_ALIGNMENT = 32, BASE_ALIGNMENT = 512 };

/* A CUtexObject or CUsurfObject. */
struct sg_texture {
	const struct sg_context *context;
	CUDA_RESOURCE_DESC resource;
	CUDA_TEXTURE_DESC how;
	struct ptx_texture ptx;
};

static struct sg_texture *texture_of(unsigned long long handle, bool is_surface)
{
	struct sg_texture *texture = (struct sg_texture *)(uintptr_t)handle;

	return sg_is(texture, SG_TEXTURE) && texture->ptx.is_surface == is_surface ? texture : NULL;
}

static bool take_format(struct ptx_texture *texture, CUarray_format format, unsigned channels)
{
	size_t bytes = sg_channel_bytes(format);

	if (bytes == 0 || (channels != 1 && channels != 2 && channels != 4))
		return false;
	texture->channels = (uint8_t)channels;
	texture->channel_bytes = (uint8_t)bytes;
	texture->kind = format == CU_AD_FORMAT_FLOAT || format == CU_AD_FORMAT_HALF ? PTX_CHANNEL_FLOAT
	                : format >= CU_AD_FORMAT_SIGNED_INT8 && format <= CU_AD_FORMAT_SIGNED_INT32
	                        ? PTX_CHANNEL_SIGNED
	                        : PTX_CHANNEL_UNSIGNED;
	return true;
}

static CUresult take_array(struct ptx_texture *texture, CUarray handle)
{
	const struct sg_array *array = sg_array_of(handle);

	if (array == NULL)
		return CUDA_ERROR_INVALID_HANDLE;
	const CUDA_ARRAY3D_DESCRIPTOR *asked = &array->asked;
	if (texture->is_surface && (asked->Flags & CUDA_ARRAY3D_SURFACE_LDST) == 0)
		return CUDA_ERROR_INVALID_VALUE;
	take_format(texture, asked->Format, asked->NumChannels);
	texture->dimensions = asked->Depth > 0 ? 3 : asked->Height > 0 ? 2 : 1;
	texture->size[0] = (uint32_t)asked->Width;
	texture->size[1] = (uint32_t)array->rows;
	texture->size[2] = (uint32_t)array->layers;
	texture->address = array->address;
	texture->pitch = array->row;
	texture->slice = array->row * array->rows;
	return CUDA_SUCCESS;
}

static CUresult take_line(struct ptx_texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	if (!take_format(texture, resource->res.linear.format, resource->res.linear.numChannels))
		return CUDA_ERROR_INVALID_VALUE;
	size_t texel = (size_t)texture->channels * texture->channel_bytes,
	       texels = resource->res.linear.sizeInBytes / texel;
	if (texels == 0 || texels > LINE_MAX_TEXELS || resource->res.linear.devPtr % BASE_ALIGNMENT != 0 ||
	    sg_place_of(sg_context_current(), resource->res.linear.devPtr, resource->res.linear.sizeInBytes, false) !=
	            SG_PLACE_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	texture->is_line = true;
	texture->dimensions = 1;
	texture->size[0] = (uint32_t)texels;
	texture->address = resource->res.linear.devPtr;
	return CUDA_SUCCESS;
}

static CUresult take_pitched(struct ptx_texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	size_t width = resource->res.pitch2D.width, height = resource->res.pitch2D.height,
	       pitch = resource->res.pitch2D.pitchInBytes;

	if (!take_format(texture, resource->res.pitch2D.format, resource->res.pitch2D.numChannels))
		return CUDA_ERROR_INVALID_VALUE;
	size_t row = width * texture->channels * texture->channel_bytes;
	if (width == 0 || height == 0 || width > 1 << 17 || height > 1 << 16 || pitch % PITCH_ALIGNMENT != 0 ||
	    pitch < row || pitch > 1 << 21 || resource->res.pitch2D.devPtr % BASE_ALIGNMENT != 0 ||
	    sg_place_of(sg_context_current(), resource->res.pitch2D.devPtr, (height - 1) * pitch + row, false) !=
	            SG_PLACE_KNOWN)
		return CUDA_ERROR_INVALID_VALUE;
	texture->dimensions = 2;
	texture->size[0] = (uint32_t)width;
	texture->size[1] = (uint32_t)height;
	texture->address = resource->res.pitch2D.devPtr;
	texture->pitch = pitch;
	return CUDA_SUCCESS;
}

static CUresult take_resource(struct ptx_texture *texture, const CUDA_RESOURCE_DESC *resource)
{
	if (resource->flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)resource->resType) {
	case CU_RESOURCE_TYPE_ARRAY:
		return take_array(texture, resource->res.array.hArray);
	case CU_RESOURCE_TYPE_LINEAR:
		return texture->is_surface ? CUDA_ERROR_INVALID_VALUE : take_line(texture, resource);
	case CU_RESOURCE_TYPE_PITCH2D:
		return texture->is_surface ? CUDA_ERROR_INVALID_VALUE : take_pitched(texture, resource);
	case CU_RESOURCE_TYPE_MIPMAPPED_ARRAY:
		return texture->is_surface ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

static CUresult take_how(struct ptx_texture *texture, const CUDA_TEXTURE_DESC *how)
{
	const unsigned known = CU_TRSF_READ_AS_INTEGER | CU_TRSF_NORMALIZED_COORDINATES |
	                       CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION;

	if ((unsigned)how->filterMode > CU_TR_FILTER_MODE_LINEAR ||
	    (how->flags & ~(known | CU_TRSF_SRGB | CU_TRSF_SEAMLESS_CUBEMAP)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	/* A line of memory is fetched by index, whatever the filter. */
	if ((how->filterMode == CU_TR_FILTER_MODE_LINEAR && !texture->is_line) || (how->flags & ~known) != 0) {
		sg_say("a texture with a filter or sRGB, which is not computed here: point sampling is");
		return CUDA_ERROR_NOT_SUPPORTED;
	}
	for (unsigned n = 0; n < texture->dimensions; n++) {
		if ((unsigned)how->addressMode[n] > CU_TR_ADDRESS_MODE_BORDER)
			return CUDA_ERROR_INVALID_VALUE;
		texture->wrap[n] = (enum ptx_wrap)how->addressMode[n];
	}
	texture->normalized = (how->flags & CU_TRSF_NORMALIZED_COORDINATES) != 0;
	texture->as_float = (how->flags & CU_TRSF_READ_AS_INTEGER) == 0 && texture->kind != PTX_CHANNEL_FLOAT &&
	                    texture->channel_bytes < 4;
	memcpy(texture->border, how->borderColor, sizeof(texture->border));
	return CUDA_SUCCESS;
}

static CUresult create(unsigned long long *ret_handle, const CUDA_RESOURCE_DESC *resource, const CUDA_TEXTURE_DESC *how,
                       const CUDA_RESOURCE_VIEW_DESC *view)
{
	struct sg_texture *fresh = calloc(1, sizeof(*fresh));

	if (fresh == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	fresh->ptx.is_surface = how == NULL;
	fresh->resource = *resource;
	sg_lock();
	fresh->context = sg_context_current();
	CUresult status = take_resource(&fresh->ptx, resource);
	if (status == CUDA_SUCCESS && how != NULL) {
		fresh->how = *how;
		status = take_how(&fresh->ptx, how);
	}
	/* Views give an array other formats and parts. */
	if (status == CUDA_SUCCESS && view != NULL)
		status = CUDA_ERROR_NOT_SUPPORTED;
	if (status == CUDA_SUCCESS && !sg_add(fresh, SG_TEXTURE))
		status = CUDA_ERROR_OUT_OF_MEMORY;
	sg_unlock();
	if (status == CUDA_SUCCESS)
		*ret_handle = (unsigned long long)(uintptr_t)fresh;
	else
		free(fresh);
	return status;
}

CUresult sg_cuTexObjectCreate(CUtexObject *pTexObject, const CUDA_RESOURCE_DESC *pResDesc,
                              const CUDA_TEXTURE_DESC *pTexDesc, const CUDA_RESOURCE_VIEW_DESC *pResViewDesc)
{
	return pTexObject == NULL || pResDesc == NULL || pTexDesc == NULL
	               ? CUDA_ERROR_INVALID_VALUE
	               : create(pTexObject, pResDesc, pTexDesc, pResViewDesc);
}

CUresult sg_cuSurfObjectCreate(CUsurfObject *pSurfObject, const CUDA_RESOURCE_DESC *pResDesc)
{
	return pSurfObject == NULL || pResDesc == NULL ? CUDA_ERROR_INVALID_VALUE
	                                               : create(pSurfObject, pResDesc, NULL, NULL);
}

/* Work under way has looked its texture up, or finds none: nothing is waited for. Zero is nothing to destroy. */
static CUresult destroy(unsigned long long handle, bool is_surface)
{
	sg_lock();
	struct sg_texture *texture = texture_of(handle, is_surface);
	if (texture != NULL)
		sg_remove(texture);
	sg_unlock();
	free(texture);
	return texture != NULL || handle == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuTexObjectDestroy(CUtexObject texObject)
{
	return destroy(texObject, false);
}

CUresult sg_cuSurfObjectDestroy(CUsurfObject surfObject)
{
	return destroy(surfObject, true);
}

static CUresult resource_of(CUDA_RESOURCE_DESC *ret_resource, unsigned long long handle, bool is_surface)
{
	sg_lock();
	const struct sg_texture *texture = texture_of(handle, is_surface);
	if (texture != NULL && ret_resource != NULL)
		*ret_resource = texture->resource;
	sg_unlock();
	return texture != NULL && ret_resource != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sg_cuTexObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUtexObject texObject)
{
	return resource_of(pResDesc, texObject, false);
}

CUresult sg_cuSurfObjectGetResourceDesc(CUDA_RESOURCE_DESC *pResDesc, CUsurfObject surfObject)
{
	return resource_of(pResDesc, surfObject, true);
}

CUresult sg_cuTexObjectGetTextureDesc(CUDA_TEXTURE_DESC *pTexDesc, CUtexObject texObject)
{
	sg_lock();
	const struct sg_texture *texture = texture_of(texObject, false);
	if (texture != NULL && pTexDesc != NULL)
		*pTexDesc = texture->how;
	sg_unlock();
	return texture != NULL && pTexDesc != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool sg_kernel_texture(void *data, uint64_t handle, struct ptx_texture *ret_texture)
{
	const struct sg_texture *texture = (const struct sg_texture *)(uintptr_t)handle;

	sg_lock();
	bool known = sg_is(texture, SG_TEXTURE) && texture->context == data;
	if (known)
		*ret_texture = texture->ptx;
	sg_unlock();
	return known;
}

struct search {
	const struct sg_context *context;
	struct sg_texture *found;
};

static void find(void *handle, void *data)
{
	struct search *search = data;

	if (((struct sg_texture *)handle)->context == search->context)
		search->found = handle;
}

void sg_textures_end(const struct sg_context *context)
{
	struct search search;

	do {
		search = (struct search){context, NULL};
		sg_each(SG_TEXTURE, find, &search);
		if (search.found != NULL)
			sg_remove(search.found);
		free(search.found);
	} while (search.found != NULL);
}
