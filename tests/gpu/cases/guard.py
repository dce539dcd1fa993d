"""Frame of the cases: protect() is cuconst's when the program runs under it, otherwise nothing, so every case runs both ways.

find(labels, what, fn)   fn writes into the protected arrays of these labels (and into no other protected array)
silent(what, fn)         fn writes into no protected array

Each step runs, synchronises, compares every protected array with its state before the step, and prints one JSON line: the kind, the labels
that should change, what it does, its line in the case, when it began and ended (seconds), what changed and which exception came.
Without the shim `changed` must equal the labels; the last line counts the steps that were otherwise.
"""
import json
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
try:
    import cuconst
    ACTIVE = cuconst.active()
except ImportError:
    ACTIVE = False
_held, _wrong = {}, []


def _snap(x):
    if hasattr(x, "detach"):
        return x.detach().clone()
    import cupy
    return cupy.asarray(x).copy()


def _same(x, y):
    if hasattr(x, "detach"):
        import torch
        return torch.equal(torch.nan_to_num(x.detach()), torch.nan_to_num(y))
    import cupy
    return bool((cupy.asarray(x) == y).all())


def protect(x, label):
    _held[label] = [x, _snap(x), cuconst.protect(x, label=label) if ACTIVE else None]
    return x


def _sync():
    for name in ("torch.cuda", "cupy.cuda", "numba.cuda"):
        if name in sys.modules:
            try:
                module = sys.modules[name]
                (module.Device() if name == "cupy.cuda" else module).synchronize()
            except Exception as e:
                return type(e).__name__
    return None


def _settle():
    """Results of checks are in host memory after the synchronisation; waits until the watcher has written their records."""
    said = -1
    while cuconst.stats().violations + cuconst.stats().inconclusive != said:
        said = cuconst.stats().violations + cuconst.stats().inconclusive
        time.sleep(0.1)


def _step(kind, labels, what, fn):
    raised, began = None, time.time()
    try:
        fn()
    except Exception as e:
        raised = type(e).__name__
    raised = raised or _sync()
    if ACTIVE:
        _settle()
    ended = time.time()
    changed = [k for k, v in _held.items() if not _same(v[0], v[1])]
    for k in changed:
        _held[k][1] = _snap(_held[k][0])
    if sorted(changed) != sorted(labels):
        _wrong.append(what)
    line = sys._getframe(2).f_lineno
    print(json.dumps({"kind": kind, "labels": labels, "what": what, "line": line, "began": began, "ended": ended,
                      "changed": changed, "raised": raised}), flush=True)


def find(labels, what, fn):
    _step("find", labels.split(), what, fn)


def silent(what, fn):
    _step("silent", [], what, fn)


def done():
    print(json.dumps({"kind": "done", "otherwise": _wrong}), flush=True)
