"""cuconst: read-only ranges of CUDA device memory, enforced at run time.

    import cuconst

    with cuconst.protect(weights, label="weights"):
        run()                                   # whoever writes into `weights` is named, refused or stopped

The work is done by libcuconst.so, which must be preloaded: ``cuconst run -- python program.py``. Without it
``active()`` is False and ``protect()`` raises ``NotActiveError``.
"""

from ._errors import CuconstError, NotActiveError, Result
from ._library import Stats, active, stats, version
from ._pieces import MAX_PIECES
from ._protection import Protection, check, protect
from ._views import ReadOnly, readonly

__version__ = "0.1.0"

__all__ = [
    "MAX_PIECES",
    "CuconstError",
    "NotActiveError",
    "Protection",
    "ReadOnly",
    "Result",
    "Stats",
    "active",
    "check",
    "protect",
    "readonly",
    "stats",
    "version",
]
