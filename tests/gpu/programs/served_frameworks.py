"""CuPy and PyTorch where they meet the allocator itself: caches flushed, out of memory and the way back, neighbours, pitched copies, pools. Prints what must not
depend on where the memory comes from."""
import importlib.util


def with_cupy():
    import cupy
    pool = cupy.get_default_memory_pool()
    free = cupy.cuda.runtime.memGetInfo()[0]
    parts = [cupy.full(n, n % 251, dtype=cupy.uint8) for n in (1, 255, 512, 1000, 1 << 20, (1 << 20) + 1, 5 << 20)]
    print("cupy sums", [int(part.sum(dtype=cupy.int64)) for part in parts])
    attributes = cupy.cuda.runtime.pointerGetAttributes(parts[3].data.ptr)
    print("cupy pointer", attributes.device, attributes.type, attributes.devicePointer == parts[3].data.ptr)
    del parts
    pool.free_all_blocks()
    try:
        cupy.empty(1 << 60, dtype=cupy.uint8)
    except cupy.cuda.memory.OutOfMemoryError:
        print("cupy out of memory")
    half = cupy.zeros(free // 2, dtype=cupy.uint8)
    try:
        cupy.zeros(free // 3 * 2, dtype=cupy.uint8)
        print("cupy had more than there is")
    except cupy.cuda.memory.OutOfMemoryError:
        print("cupy out of memory again")
    del half
    pool.free_all_blocks()
    print("cupy after the flush", int(cupy.zeros(free // 3 * 2, dtype=cupy.uint8)[-1]))
    pool.free_all_blocks()
    x = cupy.arange(1 << 16, dtype=cupy.float32).reshape(256, 256)
    print("cupy work", float(cupy.linalg.norm(x @ x.T)), float(cupy.fft.fft(x).real.sum()), float(cupy.sort(-x, axis=None)[0]))


def with_torch():
    import torch
    free, _ = torch.cuda.mem_get_info()
    x = torch.arange(1000, device="cuda")
    print("torch sum", int(x.sum()))
    big = torch.zeros(free // 2, dtype=torch.uint8, device="cuda")
    try:
        torch.zeros(free // 3 * 2, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        print("torch out of memory")
    # The cached block is too small for this: the cache is flushed and asked again, inside the allocator.
    del big
    print("torch after its own flush", int(torch.zeros(free // 3 * 2, dtype=torch.uint8, device="cuda")[-1]))
    torch.cuda.empty_cache()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        y = torch.ones(1 << 20, device="cuda").cumsum(0)
    stream.synchronize()
    print("torch stream", float(y[-1]))
    graph, z = torch.cuda.CUDAGraph(), torch.zeros(1 << 20, device="cuda")
    with torch.cuda.graph(graph):
        w = z + 1
        z.copy_(w * 2)
    for _ in range(3):
        graph.replay()
    print("torch graph", float(z[0]), float(w[-1]))
    pinned = torch.arange(1 << 16).pin_memory()
    print("torch copies", int(pinned.to("cuda", non_blocking=True).cpu().sum()))


for name, work in (("cupy", with_cupy), ("torch", with_torch)):
    if importlib.util.find_spec(name):
        work()
