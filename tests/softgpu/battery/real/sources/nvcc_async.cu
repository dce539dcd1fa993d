// Barriers in shared memory and bulk copies, as libcu++ has them. nvcc_async.ptx: nvcc 13.0, -std=c++17 -ptx -arch=sm_90 -O3.
#include <cuda/barrier>
#include <cuda/ptx>
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
using barrier = cuda::barrier<cuda::thread_scope_block>;
namespace px = cuda::ptx;

// Sums a tile that a bulk copy brought, and sends the doubled tile back by another.
extern "C" __global__ void bulk_tiles(const int *in, int *out, unsigned *sums, int tiles)
{
    __shared__ alignas(128) int tile[256];
    __shared__ barrier bar;
    __shared__ unsigned total;
    if (threadIdx.x == 0) {
        init(&bar, blockDim.x);
        total = 0;
        cuda::device::experimental::fence_proxy_async_shared_cta();
    }
    __syncthreads();
    for (int t = blockIdx.x; t < tiles; t += gridDim.x) {
        barrier::arrival_token token;
        if (threadIdx.x == 0) {
            cuda::device::memcpy_async_tx(tile, in + t * 256, cuda::aligned_size_t<16>(sizeof(tile)), bar);
            token = cuda::device::barrier_arrive_tx(bar, 1, sizeof(tile));
        } else {
            token = bar.arrive();
        }
        bar.wait(std::move(token));
        for (int i = threadIdx.x; i < 256; i += blockDim.x) {
            atomicAdd(&total, (unsigned)tile[i]);
            tile[i] *= 2;
        }
        px::fence_proxy_async(px::space_shared);
        __syncthreads();
        if (threadIdx.x == 0) {
            px::cp_async_bulk(px::space_global, px::space_shared, out + t * 256, tile, sizeof(tile));
            px::cp_async_bulk_commit_group();
            px::cp_async_bulk_wait_group_read(px::n32_t<0>());
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        atomicAdd(sums, total);
}

// A producer warp and a consumer warp, two stages, by parity.
extern "C" __global__ void two_stages(const unsigned *in, unsigned *out, int n)
{
    __shared__ unsigned stage[2][32];
    __shared__ barrier full[2], empty[2];
    if (threadIdx.x < 2) {
        init(&full[threadIdx.x], 32);
        init(&empty[threadIdx.x], 32);
    }
    __syncthreads();
    unsigned lane = threadIdx.x & 31;
    if (threadIdx.x < 32) {
        for (int i = 0; i < n; i++) {
            int s = i & 1;
            if (i >= 2)
                empty[s].wait_parity(((i >> 1) - 1) & 1);
            stage[s][lane] = in[i * 32 + lane];
            (void)full[s].arrive();
        }
    } else {
        unsigned sum = 0;
        for (int i = 0; i < n; i++) {
            int s = i & 1;
            full[s].wait_parity((i >> 1) & 1);
            sum = sum * 3 + stage[s][31 - lane];
            (void)empty[s].arrive();
        }
        out[blockIdx.x * 32 + lane] = sum + blockIdx.x;
    }
}

// Copies that the barrier awaits, and threads that drop out.
extern "C" __global__ void dropping(const uint4 *in, unsigned *out)
{
    __shared__ barrier bar;
    __shared__ uint4 data[64];
    if (threadIdx.x == 0)
        init(&bar, blockDim.x);
    __syncthreads();
    cuda::memcpy_async(&data[threadIdx.x], &in[threadIdx.x], cuda::aligned_size_t<16>(16), bar);
    bar.arrive_and_wait();
    unsigned v = data[(threadIdx.x + 1) % blockDim.x].y;
    if (threadIdx.x & 1) {
        bar.arrive_and_drop();
        out[threadIdx.x] = v;
        return;
    }
    bar.arrive_and_wait();
    data[threadIdx.x].x = v + 1;
    bar.arrive_and_wait();
    out[threadIdx.x] = data[((threadIdx.x + 2) % blockDim.x) & ~1u].x;
}

// A cluster of one block.
extern "C" __global__ void alone(unsigned *out)
{
    __shared__ unsigned word[64];
    cg::cluster_group cluster = cg::this_cluster();
    word[threadIdx.x] = threadIdx.x * 7;
    cluster.sync();
    unsigned *there = cluster.map_shared_rank(word, cluster.block_rank());
    out[threadIdx.x] = there[63 - threadIdx.x] + cluster.num_blocks();
}
