"""Start-up module of `cuconst run --protect=exports`. Python imports it by itself, because its folder comes first on PYTHONPATH.

It hides no sitecustomize of the user: the next one on sys.path is run in its place and is what `import sitecustomize` gives. Otherwise it
only puts a finder in front of sys.meta_path that waits for the modules in WATCHED; nothing else is imported here, so a Python program that uses
none of them pays a dictionary look-up per import. Nothing that goes wrong in here may disturb the program: it is one line on stderr.
"""

import os
import sys

#: Modules after whose import something is patched: the name of the function in cuconst._exports.
WATCHED = {
    "jaxlib._jax": "patch_jaxlib",
    "jaxlib.xla_extension": "patch_jaxlib",
    "jax._src.array": "patch_jaxlib",
    "cupy": "patch_cupy",
    "numba.cuda": "patch_numba",
}

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_said = set()


def say(what, reason):
    """One line on stderr, once for each `what`."""
    if what not in _said:
        _said.add(what)
        try:
            os.write(2, f"cuconst: --protect=exports: {what}: {type(reason).__name__}: {reason}\n".encode("utf-8", "replace"))
        except OSError:
            pass


def note(byte):
    """Counts for the launcher, which reads the file after the run."""
    path = os.environ.get("CUCONST_NOTES")
    if path:
        try:
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                os.write(fd, byte)
            finally:
                os.close(fd)
        except OSError:
            pass


def patch(module):
    """Patches a module of WATCHED that was just imported."""
    try:
        import cuconst._exports

        getattr(cuconst._exports, WATCHED[module.__name__])(module, say, note)
    except Exception as reason:
        say(f"{module.__name__} could not be watched", reason)


class Loader:
    """Stands before a module's own loader for the time of its import; afterwards the module shows no trace of it."""

    def __init__(self, loader):
        self._loader = loader

    def __getattr__(self, name):
        return getattr(self._loader, name)

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        patch(sys.modules.get(module.__name__, module))


class Finder:
    """Asks the other finders for a watched module and wraps what they answer."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in WATCHED:
            return None
        for finder in list(sys.meta_path):
            find = None if finder is cls else getattr(finder, "find_spec", None)
            spec = find(name, path, target) if find else None
            if spec is not None:
                if hasattr(spec.loader, "exec_module"):
                    spec.loader = Loader(spec.loader)
                return spec
        return None


def install():
    if Finder not in sys.meta_path:
        sys.meta_path.insert(0, Finder)
    for name in WATCHED:
        if name in sys.modules:
            patch(sys.modules[name])
    note(b"s")


def without_own_folder():
    return [entry for entry in sys.path if not (isinstance(entry, str) and os.path.abspath(entry or ".") == _FOLDER)]


def run_next():
    """Runs the user's own sitecustomize, as if this one were not there. Its errors are the user's and go where Python sends them."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if os.environ.get("CUCONST_PROTECT") == "exports":
    try:
        install()
    except Exception as failure:
        say("the start-up module failed", failure)
sys.path[:] = without_own_folder()
run_next()
