"""PyTorch: a transformer layer's training step with AdamW, then a CUDA graph. Arguments: steps [alternate=SECONDS]."""
import sys

import timing
import torch

steps = int(sys.argv[1])
torch.manual_seed(1)
torch.use_deterministic_algorithms(True, warn_only=True)
net = torch.nn.TransformerEncoderLayer(128, 4, 256, dropout=0.0, batch_first=True).cuda()
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
x = torch.randn(8, 32, 128, device="cuda")


def step():
    opt.zero_grad(set_to_none=True)
    loss = net(x).pow(2).mean()
    loss.backward()
    opt.step()
    return loss


first = float(step())
for _ in range(3):
    step()
graph, z = torch.cuda.CUDAGraph(), torch.zeros(1024, device="cuda")
with torch.cuda.graph(graph):
    z.add_(1)
graph.replay()
torch.cuda.synchronize()
if not timing.run(step, torch.cuda.synchronize, steps):
    print("first", f"{first:.5f}", "graph", float(z.sum()))
