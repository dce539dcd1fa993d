"""With inputs protected, what kernels' code says agrees with what they do: nothing that changed was judged clean."""
import importlib.util

import pytest

from verdict_shares import NAMES, phases

NEEDS = {"cupy": "cupy", "libraries": "cupy", "torch_eager": "torch", "torch_foreach": "torch", "torch_compiled": "torch", "jax": "jax", "triton": "triton"}


@pytest.mark.parametrize("name", NAMES)
def test_shares(name):
    if not importlib.util.find_spec(NEEDS[name]) or not importlib.util.find_spec("cupy"):
        pytest.skip(f"no {NEEDS[name]} or no cupy")
    done, found = phases(name)
    assert len(found) == 2, done.said()
    reads, writes = found
    for phase in found:
        print(phase.row(name))
    assert reads.concerned and not reads.changed and not reads.records, done.said()
    assert writes.changed, "the writes did not write\n" + done.said()
    for label in writes.changed:
        verdicts = writes.verdicts_of(label)
        contract = any(r["evidence"] == "written" and r["range"]["label"] == label for r in writes.records)
        assert contract or verdicts & {"stores", "near", "unknown"}, f"{label} changed, and no launch was blamed\n{done.said()}"
    assert not writes.unnamed, f"{writes.unnamed[0]}\n{done.said()}"
