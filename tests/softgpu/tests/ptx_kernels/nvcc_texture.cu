// Textures and surfaces by object. nvcc_texture.ptx: nvcc 13.0, -ptx -arch=sm_90 -O3.
#include <cuda_runtime.h>
extern "C" {
// Texels by unnormalised coordinates, from a little outside on all sides.
__global__ void sample(cudaTextureObject_t texture, float4 *out, int w, int h)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	if (x < w && y < h)
		out[y * w + x] = tex2D<float4>(texture, x - 2.5f, y - 1.25f);
}
// By normalised coordinates: n samples over -1 to 2.
__global__ void sample_line(cudaTextureObject_t texture, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = tex1D<float>(texture, -1.0f + 3.0f * i / n);
}
__global__ void sample_box(cudaTextureObject_t texture, unsigned *out, int w, int h, int d)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < w * h * d)
		out[i] = tex3D<unsigned>(texture, i % w + 0.5f, i / w % h + 0.5f, i / (w * h) + 0.5f);
}
__global__ void fetch(cudaTextureObject_t texture, int4 *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = tex1Dfetch<int4>(texture, i - 3);
}
__global__ void fetch_float(cudaTextureObject_t texture, float *out, int n)
{
	int i = blockIdx.x * blockDim.x + threadIdx.x;
	if (i < n)
		out[i] = tex1Dfetch<float>(texture, i);
}
// Reads a surface transposed and writes another.
__global__ void turn(cudaSurfaceObject_t in, cudaSurfaceObject_t out, int w, int h)
{
	int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
	uint2 value;
	if (x < w && y < h) {
		surf2Dread(&value, in, x * 8, y);
		surf2Dwrite(make_uint2(value.y, value.x), out, y * 8, x);
	}
}
// Beyond the edge: reads give zero or the nearest, writes are dropped.
__global__ void edges(cudaSurfaceObject_t surface, unsigned *out)
{
	int x = (int)threadIdx.x - 2;
	out[threadIdx.x] = surf1Dread<unsigned>(surface, x * 4, cudaBoundaryModeZero);
	out[32 + threadIdx.x] = surf1Dread<unsigned>(surface, x * 4, cudaBoundaryModeClamp);
	surf1Dwrite(7u, surface, (x + 100) * 4, cudaBoundaryModeZero);
}
__global__ void trapping(cudaSurfaceObject_t surface)
{
	surf1Dwrite(7u, surface, 4000, cudaBoundaryModeTrap);
}
}
