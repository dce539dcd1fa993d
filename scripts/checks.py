"""What the check_*.py have in common: the files under check, and one way to report."""
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SKIP = 77
NOT_OURS = {".git", ".venv", ".deps", "__pycache__", ".pytest_cache"}


def files(*suffixes):
    """Tracked and new, not ignored, paths relative to the root. All of them without suffixes. Works without git too."""
    try:
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                                capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):
        listed = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                  if not NOT_OURS & set(path.parts) and not path.relative_to(ROOT).parts[0].startswith("build")]
    found = sorted({pathlib.Path(name) for name in listed if name and (ROOT / name).is_file()})
    return [path for path in found if not suffixes or path.suffix in suffixes]


def text(path):
    return (ROOT / path).read_text(encoding="utf-8", errors="surrogateescape")


def report(problems, what):
    """Prints problems, or one line that says what was checked; returns the exit status. Nothing checked is a failure."""
    for problem in problems:
        print(problem)
    if not problems:
        print(f"ok: {what}")
    return 1 if problems else 0


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIP)
