"""Loaded images: every kernel that real programs launch is found in what was loaded, and read."""
import collections
import os
import pathlib
import re
import subprocess

import pytest

from harness import BUILD, HERE, run, turn
from test_programs import PROGRAMS, cupti_paths

ROOT = HERE.parent.parent


def test_every_way_of_loading():
    """The test of the software GPU, on a real driver: modules, libraries, linked code, questions during a capture."""
    with turn():
        done = subprocess.run([BUILD / "tests/unit/images/images_loads", ROOT / "tests/misuse/kernels.ptx", "times"],
                              capture_output=True, text=True, timeout=120)
    print(done.stdout)
    assert done.returncode == 0, done.stderr


def offset_of(symbol):
    """Of a hidden function, from the library's own symbol table."""
    table = subprocess.run(["nm", BUILD / "shim/libcuconst.so"], capture_output=True, text=True, check=True).stdout
    return re.search(rf"^([0-9a-f]+) [tT] {symbol}$", table, re.M).group(1)


def reasons():
    """Names of enum paths_reason, in order."""
    text = (ROOT / "shim/kernels/paths.h").read_text()
    body = re.search(r"enum paths_reason \{(.*?)\n\}", text, re.S).group(1)
    return re.findall(r"^\t(PATHS_\w+)", body, re.M)


@pytest.fixture(scope="module")
def survey(tmp_path_factory):
    paths = cupti_paths()
    if not paths:
        pytest.skip("no CUPTI here")
    header, library = paths
    built = tmp_path_factory.mktemp("survey") / "libsurvey.so"
    cuda = os.environ.get("CUDA_HOME", "/usr/local/cuda") + "/include"
    subprocess.run(["gcc", "-shared", "-fPIC", "-O2", f"-I{header}", f"-I{cuda}", "-o", built, HERE / "images_survey.c", library,
                    f"-Wl,-rpath,{library.parent}"], check=True)
    return built


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_launch_has_its_image(name, survey, tmp_path):
    answers = tmp_path / "answers"
    done = run(HERE / "programs" / f"{name}.py", "5",
               env={"CUDA_INJECTION64_PATH": str(survey), "IMAGES_SURVEY_OFFSET": offset_of("images_paths"),
                    "IMAGES_SURVEY_FILE": str(answers)})
    assert done.status == 0, done.said()
    names, kernels, launches, slowest, lost = reasons(), collections.Counter(), collections.Counter(), 0.0, []
    for line in answers.read_text().splitlines():
        reason, _, count, us, kernel = line.split(" ", 4)
        reason = names[int(reason)]
        kernels[reason] += 1
        launches[reason] += int(count)
        slowest = max(slowest, float(us))
        if names.index(reason) >= names.index("PATHS_DAMAGED"):
            lost.append((reason, kernel))
    print(f"{name}: {sum(kernels.values())} kernels {dict(kernels)}, {sum(launches.values())} launches {dict(launches)}, "
          f"slowest first question {slowest / 1000:.1f} ms")
    assert kernels and not [item for item in lost if item[0] != "PATHS_LIMIT"], lost
