"""JAX: a jitted training step with donated parameters. Arguments: steps [alternate=SECONDS]."""
import os
import sys

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax
import jax.numpy as jnp
import timing

steps = int(sys.argv[1])
w = jax.random.normal(jax.random.PRNGKey(1), (256, 256)) * 0.05
x = jax.random.normal(jax.random.PRNGKey(2), (128, 256))


def loss(w):
    return jnp.mean(jnp.tanh(x @ w) ** 2) + jnp.abs(jnp.fft.fft(w[0])).mean() * 1e-3


step = jax.jit(lambda w: w - 0.1 * jax.grad(loss)(w), donate_argnums=0)
w = step(w)
first = float(loss(w))
for _ in range(3):
    w = step(w)
w.block_until_ready()


def train():
    global w
    w = step(w)


if not timing.run(train, lambda: w.block_until_ready(), steps):
    print("first", f"{first:.5f}")
