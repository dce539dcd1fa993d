"""PyTorch: an all-reduce of two ranks on two GPUs by NCCL, of small and large tensors. One process for each rank."""
import os

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank, answers):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", RANK=str(rank), WORLD_SIZE="2")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    sums = []
    for count in (1, 1000, 1 << 20, 1 << 24):
        x = torch.full((count,), float(rank + 1), device="cuda")
        dist.all_reduce(x)
        sums.append((float(x[0]), float(x[-1])))
    dist.destroy_process_group()
    if rank == 0:
        answers.put(sums)


if __name__ == "__main__":
    context = mp.get_context("spawn")
    answers = context.SimpleQueue()
    ranks = [context.Process(target=work, args=(rank, answers)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    for rank in ranks:
        rank.join()
    print([rank.exitcode for rank in ranks], answers.get() if not any(rank.exitcode for rank in ranks) else None)
