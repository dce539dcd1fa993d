// Clusters of several blocks. nvcc_cluster.ptx: nvcc 13.0, -std=c++17 -ptx -arch=sm_90 -O3.
#include <cooperative_groups.h>
#include <cuda/ptx>
namespace cg = cooperative_groups;
namespace px = cuda::ptx;

// A histogram whose bins are spread over the blocks of a cluster.
extern "C" __global__ void spread(const unsigned *in, unsigned *out, int n)
{
    extern __shared__ unsigned bins[]; // 32 of each block
    cg::cluster_group cluster = cg::this_cluster();
    for (int i = threadIdx.x; i < 32; i += blockDim.x)
        bins[i] = 0;
    cluster.sync();
    int all = 32 * cluster.num_blocks();
    for (int i = cluster.thread_rank(); i < n; i += cluster.num_threads()) {
        unsigned bin = in[blockIdx.x / cluster.num_blocks() * n + i] % all;
        atomicAdd(cluster.map_shared_rank(bins, bin / 32) + bin % 32, 1u);
    }
    cluster.sync();
    for (int i = threadIdx.x; i < 32; i += blockDim.x)
        out[blockIdx.x * 32 + i] = bins[i];
}

// Each block sends a word to the next of its cluster, and tells it by that block's own barrier; the shape is the kernel's.
extern "C" __global__ void __cluster_dims__(2, 2, 1) ring(unsigned *out)
{
    __shared__ unsigned mail;
    __shared__ uint64_t full;
    cg::cluster_group cluster = cg::this_cluster();
    unsigned rank = cluster.block_rank(), next = (rank + 1) % cluster.num_blocks();
    if (threadIdx.x == 0)
        px::mbarrier_init(&full, 1);
    cluster.sync();
    if (threadIdx.x == 0) {
        *cluster.map_shared_rank(&mail, next) = 100 * blockIdx.y + 10 * blockIdx.x + rank + 1000;
        uint64_t *there = cluster.map_shared_rank(&full, next);
        asm volatile("{ .reg .u32 a; .reg .u64 b; cvta.to.shared.u64 b, %0; cvt.u32.u64 a, b;"
                     "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [a]; }" ::"l"(there) : "memory");
    }
    while (!px::mbarrier_try_wait_parity(px::sem_acquire, px::scope_cluster, &full, 0))
        ;
    if (threadIdx.x == 0) {
        unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
        unsigned owner;
        asm("{ .reg .u64 g; mapa.u64 g, %1, %2; getctarank.u64 %0, g; }" : "=r"(owner) : "l"(&mail), "r"(next));
        out[block * 4] = mail;
        out[block * 4 + 1] = owner == next;
        out[block * 4 + 2] = cluster.block_index().x + 10 * cluster.block_index().y;
        out[block * 4 + 3] = cluster.dim_blocks().x * 10 + cluster.dim_blocks().y;
    }
    cluster.sync();
}
