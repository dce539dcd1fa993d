"""
PyTorch with every weight of the base model protected: a training step of low-rank adapters beside it, or a decode loop with a key-value cache.
Arguments: train|decode [alternate=SECONDS]. Prints what was computed; anything that writes a weight is a violation.
"""
import sys

import timing
import torch

try:
    import cuconst

    ACTIVE = cuconst.active()
except ImportError:
    ACTIVE = False

torch.manual_seed(3)
WIDTH, HEADS, LAYERS, WORDS, ROOM = 1024, 16, 6, 4096, 512


class Adapted(torch.nn.Module):
    """A frozen linear map and a trained one of low rank."""

    def __init__(self, inputs, outputs, rank=8):
        super().__init__()
        self.base = torch.nn.Linear(inputs, outputs, bias=False)
        self.base.weight.requires_grad_(False)
        self.down = torch.nn.Linear(inputs, rank, bias=False)
        self.up = torch.nn.Linear(rank, outputs, bias=False)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = Adapted(WIDTH, 3 * WIDTH), Adapted(WIDTH, WIDTH)
        self.wide, self.narrow = Adapted(WIDTH, 4 * WIDTH), Adapted(4 * WIDTH, WIDTH)
        self.cache = None

    def forward(self, x, at=None):
        batch, length, _ = x.shape
        q, k, v = self.qkv(self.norms[0](x)).view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        if at is not None:
            self.cache[0][:, :, at : at + length] = k
            self.cache[1][:, :, at : at + length] = v
            k, v = self.cache[0][:, :, : at + length], self.cache[1][:, :, : at + length]
        mixed = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=at is None)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norms[1](x))))


embed = torch.nn.Embedding(WORDS, WIDTH).cuda().requires_grad_(False)
blocks = torch.nn.ModuleList(Block() for _ in range(LAYERS)).cuda()
held = []
if ACTIVE:
    for name, parameter in [*embed.named_parameters(), *blocks.named_parameters()]:
        if not parameter.requires_grad or sys.argv[1] == "decode":
            held.append(cuconst.protect(parameter, label=name))

if sys.argv[1] == "train":
    trained = [p for p in blocks.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    tokens = torch.randint(0, WORDS, (4, 129), device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        x = embed(tokens[:, :-1])
        for block in blocks:
            x = block(x)
        loss = torch.nn.functional.cross_entropy((x @ embed.weight.T).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss
else:
    for block in blocks:
        block.cache = torch.zeros(2, 1, HEADS, ROOM, WIDTH // HEADS, device="cuda").unbind(0)
    state = {"at": 0, "word": torch.tensor([[1]], device="cuda")}

    @torch.no_grad()
    def step():
        x = embed(state["word"])
        for block in blocks:
            x = block(x, state["at"])
        state["word"] = (x @ embed.weight.T).argmax(-1)
        state["at"] = (state["at"] + 1) % (ROOM - 1)
        return state["word"]


for _ in range(3):
    step()
torch.cuda.synchronize()
if not timing.run(step, torch.cuda.synchronize, 20):
    print(sys.argv[1], float(step().detach()))
