"""Protected arrays on two GPUs of one process: kernels and copies on each, and a copy from one to the other."""
import sys

sys.path.insert(0, str(__import__("pathlib").Path(__file__).resolve().parent.parent / "cases"))
from guard import *
import torch

first, second = (torch.ones(1 << 16, device=f"cuda:{i}") for i in (0, 1))
protect(first, "first")
protect(second, "second")
silent("reading on both", lambda: (float(first.sum()), float(second.sum())))
find("second", "kernel on the second GPU, the first is current", lambda: second.mul_(2))
find("first", "kernel on the first GPU", lambda: first.mul_(3))
other = torch.full((1 << 16,), 5.0, device="cuda:0")
find("second", "copy from the first GPU to the second", lambda: second.copy_(other))
silent("copy out of the second", lambda: other.copy_(second))


def on_second():
    with torch.cuda.device(1):
        second.add_(1)
        torch.cuda.synchronize()


find("second", "the second GPU is current", on_second)
torch.cuda.synchronize(0)
torch.cuda.synchronize(1)
done()
