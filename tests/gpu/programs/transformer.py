"""PyTorch: a small transformer trained on fixed tokens, deterministic; the losses, bit by bit. Arguments: steps [compile]."""
import os
import sys

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
import torch

steps = int(sys.argv[1])
torch.manual_seed(7)
torch.use_deterministic_algorithms(True)


class Model(torch.nn.Module):
    def __init__(self, words=512, width=256, layers=4):
        super().__init__()
        self.embed = torch.nn.Embedding(words, width)
        layer = torch.nn.TransformerEncoderLayer(width, 8, 4 * width, dropout=0.0, batch_first=True, norm_first=True)
        self.body = torch.nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, words)

    def forward(self, x):
        return self.head(self.body(self.embed(x)))


model = Model().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, foreach=True)
tokens = torch.randint(0, 512, (16, 65), device="cuda")
forward = torch.compile(model, mode="reduce-overhead") if "compile" in sys.argv else model
for step in range(steps):
    optimizer.zero_grad(set_to_none=True)
    logits = forward(tokens[:, :-1])
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if step % 5 == 0 or step == steps - 1:
        print(step, loss.item().hex())
