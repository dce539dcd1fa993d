"""Turns at a real GPU, which all tests share: a program that compares the free memory of the whole device, or takes all of it, has
it alone; all others run beside each other. The software GPU is each process's own, and nobody waits."""
import contextlib
import fcntl
import os
import pathlib
import tempfile


def software_gpu():
    """Whether programs find the software GPU: they do by the search path alone."""
    folders = [pathlib.Path(folder) for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
    return any(folder.name == "softgpu" and (folder / "libcuda.so.1").exists() for folder in folders)


def locked(name, how):
    """The open file of a lock that ends with it."""
    descriptor = os.open(pathlib.Path(tempfile.gettempdir()) / f"cuconst-tests-{os.getuid()}-{name}",
                         os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    file = open(descriptor, "w")
    fcntl.flock(file, how)
    return file


@contextlib.contextmanager
def turn(alone=False):
    """Holds the GPU, shared or alone, for one program."""
    if software_gpu():
        yield
        return
    # Who waits to be alone keeps the gate, so that those who come later wait, too, and do not pass by forever.
    with locked("gate", fcntl.LOCK_EX):
        gpu = locked("gpu", fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
    with gpu:
        yield
