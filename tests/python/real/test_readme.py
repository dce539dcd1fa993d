"""The examples of the root's README.md, as they stand there."""
import re
import subprocess
import sys

from rig import BUILD, ROOT, TOOL, VIOLATED

README = (ROOT / "README.md").read_text()


def example(language, word):
    """The one block of that language that has the word in it."""
    found = [block for block in re.findall(rf"^```{language}\n(.*?)^```$", README, re.M | re.S) if word in block]
    assert len(found) == 1, f"{len(found)} blocks of {language} with {word}"
    return found[0]


def first_line(command):
    """What the comment behind a command of a shell block says that it prints."""
    return re.search(rf"^{re.escape(command)} +# (.*)$", example("sh", command), re.M)[1]


def test_python(program):
    """x, y and z are the reader's arrays. Memory of cuMemAlloc has views with twins=all."""
    names = "x, y, z = Memory(), Memory(), Memory()\ndef step(array):\n    check(driver.cuMemsetD8(array.address, 7, 16))\n"
    checks = "assert cuconst.active() and not handle.closed and view.__cuda_array_interface__['data'][1]\n"
    made = program(names + example("python", "cuconst.stats()") + checks.replace("not handle.closed", "handle.active"))
    result = made.run("log", "--option", "twins=all")
    assert result.status == VIOLATED, result.stderr
    assert result.first == 'cuconst: violation: cuMemsetD8_v2 wrote 16 bytes of read-only "weights"'


def test_c(program, tmp_path):
    (tmp_path / "prog.c").write_text(example("c", "cuconst_protect"))
    headers = subprocess.run([sys.executable, ROOT / "scripts/find_cuda.py"], capture_output=True, text=True, check=True).stdout.strip()
    command = ["cc", "-Wall", "-Wextra", "-Werror", f"-I{ROOT}/shim", f"-I{headers}", "prog.c", "-o", "prog", f"-L{BUILD}/tests/softgpu", "-ldl", "-l:libcuda.so.1"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    environment = program("").environment((), {})
    alone = subprocess.run(["./prog"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert alone.returncode == 1 and alone.stderr.startswith("not protected: "), alone
    run = subprocess.run([TOOL, "run", "--", "./prog"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == VIOLATED and run.stderr.splitlines()[0] == first_line("cuconst run -- ./prog"), run.stderr
