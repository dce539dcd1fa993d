/* Texture and surface objects: nvcc's kernels against texels worked out here, and what is refused. */
#include <math.h>

#include "tests/softgpu/tests/check.h"

enum { W = 13, H = 7 };

static CUmodule module;

static void begin(void)
{
	const char *path = getenv("SOFTGPU_TEXTURE_PTX");

	enter(0);
	CHECK(path != NULL);
	OK(cuModuleLoad(&module, path != NULL ? path : "none"));
}

static CUresult launch(const char *name, unsigned bx, unsigned by, void **parameters)
{
	CUfunction function = NULL;

	OK(cuModuleGetFunction(&function, module, name));
	OK(cuLaunchKernel(function, 1, 1, 1, bx, by, 1, 0, NULL, parameters, NULL));
	return cuCtxSynchronize();
}

static CUarray array_of(CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth,
                        size_t texel, const void *texels)
{
	CUDA_ARRAY3D_DESCRIPTOR asked = {.Width = width,
	                                 .Height = height,
	                                 .Depth = depth,
	                                 .Format = format,
	                                 .NumChannels = channels,
	                                 .Flags = CUDA_ARRAY3D_SURFACE_LDST};
	CUDA_MEMCPY3D copy;
	CUarray array = NULL;

	OK(cuArray3DCreate(&array, &asked));
	memset(&copy, 0, sizeof(copy));
	copy.srcMemoryType = CU_MEMORYTYPE_HOST;
	copy.srcHost = texels;
	copy.srcPitch = width * texel;
	copy.srcHeight = height > 0 ? height : 1;
	copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	copy.dstArray = array;
	copy.WidthInBytes = width * texel;
	copy.Height = height > 0 ? height : 1;
	copy.Depth = depth > 0 ? depth : 1;
	OK(cuMemcpy3D(&copy));
	return array;
}

static CUDA_RESOURCE_DESC resource_of(CUarray array)
{
	CUDA_RESOURCE_DESC resource = {.resType = CU_RESOURCE_TYPE_ARRAY};

	resource.res.array.hArray = array;
	return resource;
}

static CUtexObject texture_of(const CUDA_RESOURCE_DESC *resource, CUaddress_mode mode, unsigned flags)
{
	CUDA_TEXTURE_DESC how = {.addressMode = {mode, mode, mode}, .flags = flags, .borderColor = {9, 8, 7, 6}};
	CUtexObject texture = 0;

	OK(cuTexObjectCreate(&texture, resource, &how, NULL));
	return texture;
}

/* Where a coordinate falls, worked out in another way than the interpreter does; -1: the border. */
static int nearest(int at, int size, CUaddress_mode mode)
{
	while (mode == CU_TR_ADDRESS_MODE_WRAP && at < 0)
		at += size;
	while (mode == CU_TR_ADDRESS_MODE_WRAP && at >= size)
		at -= size;
	while (mode == CU_TR_ADDRESS_MODE_MIRROR && (at < 0 || at >= size))
		at = at < 0 ? -1 - at : 2 * size - 1 - at;
	if (mode == CU_TR_ADDRESS_MODE_BORDER && (at < 0 || at >= size))
		return -1;
	return at < 0 ? 0 : at >= size ? size - 1 : at;
}

/* Four channels of a byte each, as fractions, a little beyond all edges. */
static void flat(void)
{
	static const CUaddress_mode modes[] = {CU_TR_ADDRESS_MODE_CLAMP, CU_TR_ADDRESS_MODE_BORDER,
	                                       CU_TR_ADDRESS_MODE_WRAP};
	static float back[20][18][4];
	unsigned char texels[H][W][4];
	int w = 18, h = 20;
	CUdeviceptr out;

	begin();
	for (int i = 0; i < H * W * 4; i++)
		((unsigned char *)texels)[i] = (unsigned char)(i * 37 + 11);
	CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT8, 4, W, H, 0, 4, texels);
	CUDA_RESOURCE_DESC resource = resource_of(array);
	OK(cuMemAlloc(&out, sizeof(back)));
	for (size_t m = 0; m < 3; m++) {
		CUtexObject texture = texture_of(&resource, modes[m], 0);
		/* Wrapping is for normalized coordinates; without, it is clamping. */
		CUaddress_mode mode = modes[m] == CU_TR_ADDRESS_MODE_WRAP ? CU_TR_ADDRESS_MODE_CLAMP : modes[m];
		void *parameters[] = {&texture, &out, &w, &h};
		OK(launch("sample", 18, 20, parameters));
		OK(cuMemcpyDtoH(back, out, sizeof(back)));
		for (int y = 0; y < h; y++)
			for (int x = 0; x < w; x++) {
				int tx = nearest((int)floor(x - 2.5), W, mode),
				    ty = nearest((int)floor(y - 1.25), H, mode);
				for (int c = 0; c < 4; c++)
					CHECK(back[y][x][c] ==
					      (tx < 0 || ty < 0 ? (float)(9 - c) : (float)texels[ty][tx][c] / 255.0f));
			}
		OK(cuTexObjectDestroy(texture));
	}
	/* The same of pitched memory. */
	CUdeviceptr pitched;
	size_t pitch;
	OK(cuMemAllocPitch(&pitched, &pitch, W * 4, H, 4));
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = texels,
	                      .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                      .dstDevice = pitched,
	                      .dstPitch = pitch,
	                      .WidthInBytes = W * 4,
	                      .Height = H};
	OK(cuMemcpy2D(&copy));
	CUDA_RESOURCE_DESC plane = {.resType = CU_RESOURCE_TYPE_PITCH2D};
	plane.res.pitch2D.devPtr = pitched;
	plane.res.pitch2D.format = CU_AD_FORMAT_UNSIGNED_INT8;
	plane.res.pitch2D.numChannels = 4;
	plane.res.pitch2D.width = W;
	plane.res.pitch2D.height = H;
	plane.res.pitch2D.pitchInBytes = pitch;
	CUtexObject texture = texture_of(&plane, CU_TR_ADDRESS_MODE_CLAMP, 0);
	void *parameters[] = {&texture, &out, &w, &h};
	OK(launch("sample", 18, 20, parameters));
	OK(cuMemcpyDtoH(back, out, sizeof(back)));
	CHECK(back[5][6][1] == (float)texels[3][3][1] / 255.0f &&
	      back[19][17][3] == (float)texels[H - 1][W - 1][3] / 255.0f);
	leave(0);
}

/* Normalized coordinates over three widths, by every address mode; halves and signed shorts as fractions. */
static void line(void)
{
	short texels[16];
	float back[96];
	int n = 96;
	CUdeviceptr out;

	begin();
	for (int i = 0; i < 16; i++)
		texels[i] = (short)(i == 3 ? -32768 : i * 4000 - 30000);
	CUarray array = array_of(CU_AD_FORMAT_SIGNED_INT16, 1, 16, 0, 0, 2, texels);
	CUDA_RESOURCE_DESC resource = resource_of(array);
	OK(cuMemAlloc(&out, sizeof(back)));
	for (unsigned mode = 0; mode < 4; mode++) {
		CUtexObject texture = texture_of(&resource, (CUaddress_mode)mode, CU_TRSF_NORMALIZED_COORDINATES);
		void *parameters[] = {&texture, &out, &n};
		OK(launch("sample_line", 96, 1, parameters));
		OK(cuMemcpyDtoH(back, out, sizeof(back)));
		for (int i = 0; i < n; i++) {
			int at = nearest((int)floorf((-1.0f + 3.0f * (float)i / (float)n) * 16), 16,
			                 (CUaddress_mode)mode);
			float value = at < 0 ? 9.0f : (float)texels[at] / 32767.0f;
			CHECK(back[i] == (value < -1.0f ? -1.0f : value));
		}
	}
	leave(0);
}

static void box_and_fetch(void)
{
	unsigned texels[3][4][5], back[64];
	int w = 5, h = 4, d = 3, n = 20, fetched[20][4];
	float floats[20];
	CUdeviceptr out, memory;

	begin();
	for (unsigned i = 0; i < 60; i++)
		((unsigned *)texels)[i] = i * 2654435761u;
	CUarray array = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 5, 4, 3, 4, texels);
	CUDA_RESOURCE_DESC resource = resource_of(array), line = {.resType = CU_RESOURCE_TYPE_LINEAR};
	OK(cuMemAlloc(&out, 4096));
	CUtexObject texture = texture_of(&resource, CU_TR_ADDRESS_MODE_CLAMP, CU_TRSF_READ_AS_INTEGER);
	void *box[] = {&texture, &out, &w, &h, &d};
	OK(launch("sample_box", 64, 1, box));
	OK(cuMemcpyDtoH(back, out, 240));
	CHECK(memcmp(back, texels, 240) == 0);
	/* Whole numbers with a sign, two channels of four that there are; beyond the line all is zero. */
	signed char bytes[14][2];
	for (int i = 0; i < 28; i++)
		((signed char *)bytes)[i] = (signed char)(i * 11 - 100);
	OK(cuMemAlloc(&memory, 512));
	OK(cuMemcpyHtoD(memory, bytes, sizeof(bytes)));
	line.res.linear.devPtr = memory;
	line.res.linear.format = CU_AD_FORMAT_SIGNED_INT8;
	line.res.linear.numChannels = 2;
	line.res.linear.sizeInBytes = sizeof(bytes);
	texture = texture_of(&line, CU_TR_ADDRESS_MODE_CLAMP, CU_TRSF_READ_AS_INTEGER);
	void *fetch[] = {&texture, &out, &n};
	OK(launch("fetch", 20, 1, fetch));
	OK(cuMemcpyDtoH(fetched, out, sizeof(fetched)));
	for (int i = 0; i < n; i++)
		for (int c = 0; c < 2; c++)
			CHECK(fetched[i][c] == (i < 3 || i >= 17 ? 0 : bytes[i - 3][c]));
	/* Halves as floats. */
	unsigned short halves[20];
	for (int i = 0; i < 20; i++)
		halves[i] = (unsigned short)(0x3c00 + i * 64);
	OK(cuMemcpyHtoD(memory, halves, sizeof(halves)));
	line.res.linear.format = CU_AD_FORMAT_HALF;
	line.res.linear.numChannels = 1;
	line.res.linear.sizeInBytes = sizeof(halves);
	texture = texture_of(&line, CU_TR_ADDRESS_MODE_CLAMP, 0);
	OK(launch("fetch_float", 20, 1, fetch));
	OK(cuMemcpyDtoH(floats, out, sizeof(floats)));
	for (int i = 0; i < 20; i++)
		CHECK(floats[i] == (i < 16 ? 1.0f + (float)i / 16 : 2.0f + (float)(i - 16) / 8));
	leave(0);
}

static void surfaces(void)
{
	unsigned texels[H][W][2], back[W][H][2], line[32], edges[64];
	int w = W, h = H;
	CUsurfObject in = 0, out = 0, flat = 0;
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .dstMemoryType = CU_MEMORYTYPE_HOST,
	                      .dstHost = back,
	                      .WidthInBytes = H * 8,
	                      .Height = W};
	CUdeviceptr result;

	begin();
	for (unsigned i = 0; i < H * W * 2; i++)
		((unsigned *)texels)[i] = i * 40503u;
	for (unsigned i = 0; i < 32; i++)
		line[i] = 100 + i;
	CUarray from = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 2, W, H, 0, 8, texels);
	CUarray to = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 2, H, W, 0, 8, texels);
	CUDA_RESOURCE_DESC one = resource_of(from), other = resource_of(to);
	OK(cuSurfObjectCreate(&in, &one));
	OK(cuSurfObjectCreate(&out, &other));
	void *parameters[] = {&in, &out, &w, &h};
	OK(launch("turn", 16, 16, parameters));
	copy.srcArray = to;
	OK(cuMemcpy2D(&copy));
	for (int y = 0; y < H; y++)
		for (int x = 0; x < W; x++)
			CHECK(back[x][y][0] == texels[y][x][1] && back[x][y][1] == texels[y][x][0]);
	/* Edges: zero, the nearest, and writes that vanish. */
	CUarray thin = array_of(CU_AD_FORMAT_UNSIGNED_INT32, 1, 10, 0, 0, 4, line);
	CUDA_RESOURCE_DESC third = resource_of(thin);
	OK(cuSurfObjectCreate(&flat, &third));
	OK(cuMemAlloc(&result, sizeof(edges)));
	void *beyond[] = {&flat, &result};
	OK(launch("edges", 32, 1, beyond));
	OK(cuMemcpyDtoH(edges, result, sizeof(edges)));
	for (int i = 0; i < 32; i++) {
		int x = i - 2, near = x < 0 ? 0 : x > 9 ? 9 : x;
		CHECK(edges[i] == (x == near ? line[x] : 0) && edges[32 + i] == line[near]);
	}
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, launch("trapping", 1, 1, beyond));
	leave(0);
}

/* Objects of nothing, of what is gone, of the wrong kind; and descriptions that are none. */
static void refused(void)
{
	float texels[16] = {1};
	CUDA_TEXTURE_DESC how = {.filterMode = CU_TR_FILTER_MODE_POINT}, got;
	CUDA_ARRAY3D_DESCRIPTOR asked = {.Width = 16, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
	CUDA_RESOURCE_DESC line = {.resType = CU_RESOURCE_TYPE_LINEAR}, back;
	CUtexObject texture = 0;
	CUarray plain;
	CUdeviceptr out;
	int n = 8;
	void *parameters[] = {&texture, &out, &n};

	begin();
	OK(cuMemAlloc(&out, 4096));
	CUarray array = array_of(CU_AD_FORMAT_FLOAT, 1, 16, 0, 0, 4, texels);
	CUDA_RESOURCE_DESC resource = resource_of(array);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(NULL, &resource, &how, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, NULL, &how, NULL));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, NULL, NULL));
	how.filterMode = CU_TR_FILTER_MODE_LINEAR;
	STATUS(CUDA_ERROR_NOT_SUPPORTED, cuTexObjectCreate(&texture, &resource, &how, NULL));
	how.filterMode = (CUfilter_mode)9;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, NULL));
	how.filterMode = CU_TR_FILTER_MODE_POINT;
	how.addressMode[0] = (CUaddress_mode)7;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, NULL));
	how.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
	resource.flags = 1;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &resource, &how, NULL));
	resource.flags = 0;
	line.res.linear.devPtr = out + 4;
	line.res.linear.format = CU_AD_FORMAT_FLOAT;
	line.res.linear.numChannels = 1;
	line.res.linear.sizeInBytes = 64;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &line, &how, NULL));
	line.res.linear.devPtr = out;
	line.res.linear.sizeInBytes = 8192;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &line, &how, NULL));
	line.res.linear.sizeInBytes = 64;
	line.res.linear.numChannels = 3;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectCreate(&texture, &line, &how, NULL));
	line.res.linear.numChannels = 1;
	STATUS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&texture, &line));
	OK(cuArray3DCreate(&plain, &asked));
	CUDA_RESOURCE_DESC without = resource_of(plain);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectCreate(&texture, &without)); /* not made for surfaces */
	OK(cuTexObjectCreate(&texture, &resource, &how, NULL));
	OK(cuTexObjectGetResourceDesc(&back, texture));
	OK(cuTexObjectGetTextureDesc(&got, texture));
	CHECK(back.res.array.hArray == array && got.addressMode[0] == CU_TR_ADDRESS_MODE_CLAMP);
	STATUS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectGetResourceDesc(&back, texture));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuSurfObjectDestroy(texture));
	OK(launch("sample_line", 8, 1, parameters));
	/* The array goes away under its texture. */
	OK(cuArrayDestroy(array));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, launch("sample_line", 8, 1, parameters));
	leave(0);
	begin();
	OK(cuMemAlloc(&out, 4096));
	STATUS(CUDA_ERROR_INVALID_VALUE, cuTexObjectDestroy(texture)); /* ended with its context */
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, launch("sample_line", 8, 1, parameters));
	leave(0);
	begin();
	OK(cuMemAlloc(&out, 4096));
	texture = 0;
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, launch("sample_line", 8, 1, parameters));
	leave(0);
	/* Of two dimensions, read as a line. */
	begin();
	OK(cuMemAlloc(&out, 4096));
	CUDA_RESOURCE_DESC flat = resource_of(array_of(CU_AD_FORMAT_FLOAT, 1, 4, 4, 0, 4, texels));
	OK(cuTexObjectCreate(&texture, &flat, &how, NULL));
	STATUS(CUDA_ERROR_ILLEGAL_ADDRESS, launch("sample_line", 8, 1, parameters));
	leave(0);
	OK(cuInit(0));
}

MAIN(T(flat), T(line), T(box_and_fetch), T(surfaces), T(refused))
