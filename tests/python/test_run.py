"""cuconst run: finding things, environment, signals, exit codes, warnings."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest
from conftest import PYTHON, SHIM, TOOL, clean_environment

SAY = "import os, sys; print(os.environ.get('{}'))"


def says(result, stdout, code=0):
    assert (result.returncode, result.stderr, result.stdout) == (code, "", stdout)


def environment(tool, name, *options, **env):
    result = tool("run", *options, "--", sys.executable, "-c", SAY.format(name), **env)
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.strip()


def test_help_and_version(tool):
    for arguments in (["--help"], ["-h"], ["help"], ["run", "--help"], ["run", "-h"], ["report", "--help"]):
        result = tool(*arguments)
        assert result.returncode == 0 and result.stderr == "" and "usage: cuconst" in result.stdout
    says(tool("--version"), "cuconst 0.1.0\n")


def test_every_option_is_in_the_help(tool):
    text = tool("run", "--help").stdout
    for option in ("--mode", "--log", "--exitcode", "--suppressions", "--protect=exports", "--option", "--library", "--verbose", "CUCONST_OPTIONS"):
        assert option in text


WRONG = {
    (): "no command: run, report or scan",
    ("walk",): "unknown command 'walk': run, report or scan",
    ("run",): "no program to run: cuconst run [options] -- PROGRAM [argument ...]",
    ("run", "--"): "no program to run: cuconst run [options] -- PROGRAM [argument ...]",
    ("run", "--mode", "loud", "true"): "--mode loud: must be log, deny or strict",
    ("run", "--mode"): "--mode: needs a value",
    ("run", "--exitcode", "0", "true"): "--exitcode 0: must be a number from 1 to 255",
    ("run", "--exitcode", "256", "true"): "--exitcode 256: must be a number from 1 to 255",
    ("run", "--exitcode", "8x", "true"): "--exitcode 8x: must be a number from 1 to 255",
    ("run", "--exitcode", "", "true"): "--exitcode : must be a number from 1 to 255",
    ("run", "--protect=everything", "true"): "--protect=everything: only --protect=exports is known",
    ("run", "--option", "verify", "true"): "--option verify: must be NAME=VALUE, without a colon",
    ("run", "--option", "a=b:c=d", "true"): "--option a=b:c=d: must be NAME=VALUE, without a colon",
    ("run", "--suppressions", "/nowhere/s", "true"): "--suppressions: /nowhere/s: No such file or directory",
    ("run", "--log", "", "true"): "--log: the file name is empty",
    ("run", "--log", "/tmp/a:b", "true"): "--log: /tmp/a:b: a path with a colon cannot be passed on in CUCONST_OPTIONS",
    ("run", "--verbose=1", "true"): "--verbose=1: takes no value",
    ("run", "--colour", "true"): "--colour: unknown or ambiguous option",
    ("run", "-q", "true"): "-q: unknown or ambiguous option",
    ("report",): "no log: cuconst report LOG ...",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_wrong_command_lines(tool, arguments):
    result = tool(*arguments)
    assert result.returncode == 64 and result.stdout == ""
    assert result.stderr.splitlines()[0] == "cuconst: " + WRONG[arguments]
    assert "--help" in result.stderr.splitlines()[1]


def test_the_program_s_own_options_are_its_own(tool):
    says(tool("run", "echo", "--mode", "x"), "--mode x\n")
    says(tool("run", "--", "echo", "--", "-v"), "-- -v\n")


def test_options_are_passed_and_the_command_line_wins(tool, tmp_path):
    (tmp_path / "s").write_text("")
    assert environment(tool, "CUCONST_OPTIONS") == "None"
    assert environment(tool, "CUCONST_OPTIONS", "--mode", "deny", "--exitcode=7", "--option", "verify=0") == "mode=deny:exitcode=7:verify=0"
    assert environment(tool, "CUCONST_OPTIONS", "--mode=log", CUCONST_OPTIONS="mode=strict:color=0") == "mode=strict:color=0:mode=log"
    assert environment(tool, "CUCONST_OPTIONS", "--log", "/x/%p.jsonl", "--suppressions", tmp_path / "s") == f"log=/x/%p.jsonl:suppressions={tmp_path}/s"


def test_relative_paths_are_made_absolute(tool, tmp_path):
    result = tool("run", "--log", "a/%h.jsonl", "--", "sh", "-c", "echo $CUCONST_OPTIONS", cwd=tmp_path)
    says(result, f"log={tmp_path}/a/%h.jsonl\n")


def test_preload_is_prepended_and_not_repeated(tool):
    assert environment(tool, "LD_PRELOAD") == str(SHIM)
    # Of a library that the loader reports as missing the message is the loader's: a real one is needed.
    other = pathlib.Path(shutil.copy(SHIM, "/tmp/libcuconst_test_other.so"))
    try:
        assert environment(tool, "LD_PRELOAD", LD_PRELOAD=other) == f"{SHIM}:{other}"
        assert environment(tool, "LD_PRELOAD", LD_PRELOAD=f"{other}:{SHIM}") == f"{other}:{SHIM}"
    finally:
        other.unlink()


def test_pythonpath_is_appended(tool):
    assert environment(tool, "PYTHONPATH") == str(PYTHON)
    assert environment(tool, "PYTHONPATH", PYTHONPATH="/a:/b") == f"/a:/b:{PYTHON}"
    assert environment(tool, "PYTHONPATH", "--protect=exports", PYTHONPATH="/a") == f"{PYTHON}/cuconst/startup:/a:{PYTHON}"


def test_the_module_is_importable_and_active(tool):
    says(tool("run", "--", sys.executable, "-c", "import cuconst; print(cuconst.active(), cuconst.version())"), "True 0.1.0\n")


def test_a_module_of_the_program_s_own_wins(tool, tmp_path):
    (tmp_path / "cuconst.py").write_text("mine = 1\n")
    says(tool("run", "--", sys.executable, "-c", "import cuconst; print(cuconst.mine)", PYTHONPATH=tmp_path), "1\n")


def test_library_by_option_environment_and_place(tool, tmp_path):
    copy = str(shutil.copy(SHIM, tmp_path / "libother.so"))
    assert environment(tool, "LD_PRELOAD", "--library", copy) == copy
    assert environment(tool, "LD_PRELOAD", "--library", copy, CUCONST_LIBRARY="/nowhere") == copy
    for tool_place, library_place in [("bin", "lib"), ("bin", "lib/cuconst"), ("bin", "lib64"), ("bin", "lib/x86_64-linux-gnu/cuconst"), ("x", "x"), ("tools", "shim/doors"), ("tools", "shim")]:
        root = tmp_path / f"{tool_place}-{library_place.replace('/', '-')}"
        (root / tool_place).mkdir(parents=True)
        (root / library_place).mkdir(parents=True, exist_ok=True)
        mine = shutil.copy(TOOL, root / tool_place / "cuconst")
        library = shutil.copy(SHIM, root / library_place / "libcuconst.so")
        result = subprocess.run([mine, "run", "sh", "-c", "echo $LD_PRELOAD"], env=clean_environment(), capture_output=True, text=True, timeout=60)
        says(result, f"{library}\n")


def test_library_that_is_not_there_or_is_none(tool, tmp_path):
    mine = shutil.copy(TOOL, tmp_path / "cuconst")
    result = subprocess.run([mine, "run", "true"], env=clean_environment(), capture_output=True, text=True, timeout=60)
    lines = result.stderr.splitlines()
    assert result.returncode == 69
    assert lines[0] == "cuconst: libcuconst.so was not found. Looked for:"
    assert f"cuconst:   {tmp_path}/libcuconst.so: No such file or directory" in lines
    assert lines[-1] == "cuconst: give its path with --library PATH or CUCONST_LIBRARY"
    (tmp_path / "text.so").write_text("no library, but longer than sixteen bytes")
    for path, fault in [("/nowhere", "No such file or directory"), (tmp_path, "not a file"), (tmp_path / "text.so", "not a shared library")]:
        result = tool("run", "--library", path, "true")
        assert (result.returncode, result.stderr) == (69, f"cuconst: --library: {path}: {fault}\n")
        result = tool("run", "true", CUCONST_LIBRARY=path)
        assert (result.returncode, result.stderr) == (69, f"cuconst: $CUCONST_LIBRARY: {path}: {fault}\n")


def test_library_path_the_loader_would_split(tool, tmp_path):
    (tmp_path / "a b").mkdir()
    path = shutil.copy(SHIM, tmp_path / "a b" / "lib.so")
    result = tool("run", "--library", path, "true")
    assert result.returncode == 69 and "its path holds a colon or a space" in result.stderr


@pytest.mark.parametrize("code", [0, 1, 7, 64, 86, 255])
def test_exit_codes(tool, code):
    says(tool("run", "sh", "-c", f"exit {code}"), "", code)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1])
def test_death_by_signal_is_died_alike(tool, number):
    says(tool("run", "sh", "-c", f"kill -{number.value} $$"), "", -number)


def test_not_found_and_not_executable(tool, tmp_path):
    result = tool("run", "no-such-program-anywhere")
    assert (result.returncode, result.stderr) == (127, "cuconst: no-such-program-anywhere: not found in PATH\n")
    plain = tmp_path / "plain"
    plain.write_text("#!/bin/sh\n")
    result = tool("run", plain)
    assert (result.returncode, result.stderr) == (126, f"cuconst: {plain}: Permission denied\n")
    plain.write_text("#!/no/such/interpreter\n")
    plain.chmod(0o755)
    result = tool("run", plain)
    assert (result.returncode, result.stderr) == (127, f"cuconst: {plain}: not found (or its interpreter is not there)\n")
    result = tool("run", "plain", cwd=tmp_path)
    assert (result.returncode, result.stderr) == (127, "cuconst: plain: not found in PATH: for the file in this folder say ./plain\n")


STATUS = "import ctypes; ctypes.CDLL(None).fake_status({})"


@pytest.mark.parametrize("options,env,code", [
    ([], {}, 86),
    (["--exitcode", "9"], {}, 9),
    ([], {"CUCONST_OPTIONS": "mode=log:exitcode=33"}, 33),
    (["--exitcode", "9"], {"CUCONST_OPTIONS": "exitcode=33"}, 9),
    ([], {"CUCONST_OPTIONS": "exitcode=1000:exitcodes=5"}, 86),
])
def test_violations_set_the_exit_code(tool, options, env, code):
    says(tool("run", *options, "--", sys.executable, "-c", STATUS.format("1, 3, 0, 0"), **env), "", code)


def test_violations_leave_the_program_s_own_failure(tool):
    says(tool("run", "--", sys.executable, "-c", STATUS.format("1, 3, 0, 0") + "; raise SystemExit(5)"), "", 5)
    says(tool("run", "--", sys.executable, "-c", STATUS.format("1, 0, 0, 0")), "", 0)


def test_violations_in_a_grandchild_count(tool):
    says(tool("run", "--", "sh", "-c", f"{sys.executable} -c '{STATUS.format('1, 1, 0, 0')}'; true"), "", 86)


def test_a_shim_that_could_not_start_is_said(tool):
    result = tool("run", "--", sys.executable, "-c", STATUS.format("0, 0, 0, 2"))
    assert (result.returncode, result.stderr) == (0, "cuconst: warning: the guard could not start in 2 processes, which ran unguarded and said why on stderr\n")


def test_verbose(tool):
    result = tool("run", "-v", "--", sys.executable, "-c", STATUS.format("2, 3, 1, 0"))
    assert result.returncode == 86
    assert result.stderr == f"cuconst: preloads {SHIM}\ncuconst: 2 processes used CUDA, 0 launches, 3 violations, 1 denied, 0 inconclusive\n"
    result = tool("run", "-v", "true")
    assert (result.returncode, result.stderr) == (0, f"cuconst: preloads {SHIM}\ncuconst: true did not use CUDA\n")


def test_libcuda_without_any_hook_is_said(tool, tmp_path):
    library = shutil.copy(SHIM, tmp_path / "libcuda.so.1")
    for program in ([], ["sh", "-c", '"$@"; true', "sh"]):
        result = tool("run", "--", *program, sys.executable, "-c", f"import ctypes, time; ctypes.CDLL({str(library)!r}); time.sleep(1)")
        name = program[0] if program else sys.executable
        assert (result.returncode, result.stderr) == (
            0, f"cuconst: warning: no hook was reached, although {name} loaded libcuda: nothing was guarded in this run\n")


@pytest.fixture(scope="module")
def static_program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("static")
    (folder / "p.c").write_text("int main(void) { return 3; }\n")
    subprocess.run(["cc", "-static", "-o", folder / "p", folder / "p.c"], check=True, timeout=60)
    return folder / "p"


def test_a_static_program_is_said_and_run(tool, static_program):
    result = tool("run", static_program)
    assert result.returncode == 3
    assert result.stderr == f"cuconst: warning: {static_program} is statically linked: no library can be preloaded into it. It runs unguarded\n"


def test_a_static_program_behind_a_script_and_on_the_path(tool, static_program, tmp_path):
    script = tmp_path / "script"
    script.write_text(f"#! {static_program} -x\n")
    script.chmod(0o755)
    assert "statically linked" in tool("run", script).stderr
    assert "statically linked" in tool("run", "p", PATH=f"/nowhere:{static_program.parent}").stderr


def test_a_setuid_program_is_said(tool, tmp_path):
    if os.geteuid() == 0:
        program = pathlib.Path(shutil.copy("/bin/true", tmp_path / "true"))
        os.chown(program, 65534, 65534)
        program.chmod(0o4755)
    else:
        program = pathlib.Path(shutil.which("su"))
        assert program.stat().st_mode & 0o4000 and program.stat().st_uid == 0
    result = tool("run", program, "--help")
    assert result.stderr.splitlines()[0] == (
        f"cuconst: warning: {program} is setuid, setgid or has file capabilities: the loader ignores LD_PRELOAD for it. It runs unguarded")


def test_odd_files_are_run_without_a_word(tool, tmp_path):
    for name, content in {"empty": b"", "short": b"#", "bang": b"#!", "elf": b"\x7fELF", "spaces": b"#!     \n"}.items():
        path = tmp_path / name
        path.write_bytes(content)
        path.chmod(0o755)
        assert "warning" not in tool("run", path).stderr


def folders(where):
    return sorted(p.name for p in pathlib.Path(where).iterdir() if p.name.startswith("cuconst."))


def test_the_private_folder(tool, tmp_path):
    result = tool("run", "sh", "-c", "stat -c '%a %s' $CUCONST_STATUS $CUCONST_NOTES ${CUCONST_STATUS%/*} | cut -d' ' -f1; dirname $CUCONST_STATUS", TMPDIR=tmp_path)
    lines = result.stdout.split()
    assert lines[:3] == ["600", "600", "700"] and pathlib.Path(lines[3]).parent == tmp_path
    assert folders(tmp_path) == []


@pytest.mark.parametrize("program", ["kill -9 $$", "exit 3", "no-such-program-anywhere"])
def test_the_private_folder_is_removed(tool, tmp_path, program):
    tool("run", "sh", "-c", program, TMPDIR=tmp_path)
    tool("run", "no-such-program-anywhere", TMPDIR=tmp_path)
    assert folders(tmp_path) == []


def test_without_a_private_folder_the_program_runs(tool):
    result = tool("run", "sh", "-c", "echo ${CUCONST_STATUS-none}; exit 4", TMPDIR="/nowhere", CUCONST_STATUS="/inherited")
    assert (result.returncode, result.stdout) == (4, "none\n")
    assert result.stderr.startswith("cuconst: no private folder could be made in $TMPDIR or /tmp (No such file or directory)")


def start(*arguments, **more):
    return subprocess.Popen([TOOL, "run", "--", *arguments], env=clean_environment(CUCONST_LIBRARY=SHIM, **more.pop("env", {})), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, **more)


# A signal may come while a print() is on its way out, and another one then is an error; and just before a pause(), which would not end.
TRAP = """
import os, signal, sys, time
def say(text):
    os.write(1, (text + "\\n").encode())
def handler(number, frame):
    say(signal.Signals(number).name)
    if number == signal.SIGTERM: sys.exit(9)
for name in ("INT", "TERM", "HUP", "QUIT", "USR1", "USR2"):
    signal.signal(getattr(signal, "SIG" + name), handler)
say(f"ready {os.getpid()}")
while True: time.sleep(0.05)
"""


def test_signals_are_passed_on_once(tmp_path):
    process = start(sys.executable, "-c", TRAP, env={"TMPDIR": tmp_path}, start_new_session=True)
    assert process.stdout.readline().startswith("ready")
    for name in ("SIGINT", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTERM"):
        process.send_signal(getattr(signal, name))
        assert process.stdout.readline() == name + "\n"
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (9, "", "")
    assert folders(tmp_path) == []


def test_death_by_a_passed_signal_leaves_nothing(tmp_path):
    process = start("sh", "-c", "echo ready; exec sleep 60", env={"TMPDIR": tmp_path})
    process.stdout.readline()
    time.sleep(0.1)
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM and folders(tmp_path) == []


def test_a_signal_the_program_sends_to_its_group_is_not_doubled():
    source = "import os, signal, time\nsignal.signal(signal.SIGUSR1, lambda *a: print('one', flush=True))\nos.kill(0, signal.SIGUSR1)\ntime.sleep(0.3)\n"
    process = start(sys.executable, "-c", source, start_new_session=True)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "one\n", "")


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def wait_state(pid, wanted):
    until = time.monotonic() + 30
    while state(pid) not in wanted:
        assert time.monotonic() < until, (pid, state(pid), wanted)
        time.sleep(0.01)


def test_stop_and_continue():
    # A group of its own below us, as a shell makes it: SIGTSTP does not stop an orphaned group.
    process = start(sys.executable, "-c", "import os, sys, time\nprint(os.getpid(), flush=True)\ntime.sleep(60)", preexec_fn=os.setpgrp)
    child = int(process.stdout.readline())
    for _ in range(2):
        process.send_signal(signal.SIGTSTP)
        wait_state(child, "T")
        wait_state(process.pid, "T")
        process.send_signal(signal.SIGCONT)
        wait_state(process.pid, "S")
        wait_state(child, "S")
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


def test_signal_mask_and_dispositions_are_the_caller_s():
    source = ("import signal; print(sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))), "
              "int(signal.getsignal(signal.SIGUSR2)), int(signal.getsignal(signal.SIGCHLD)))")

    def before():
        signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGWINCH])

    process = start(sys.executable, "-c", source, preexec_fn=before)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert out == f"[{int(signal.SIGWINCH)}] {int(signal.SIG_IGN)} {int(signal.SIG_IGN)}\n"


def test_descriptors_are_not_leaked_into_the_program():
    process = start(sys.executable, "-c", "import os; print(sorted(map(int, os.listdir('/proc/self/fd'))))")
    out, _ = process.communicate(timeout=60)
    assert out == "[0, 1, 2, 3]\n"


def test_closed_descriptors_do_no_harm():
    result = subprocess.run(["sh", "-c", f"exec {TOOL} run -- sh -c 'exit 6' <&- >&- 2>&-"], env=clean_environment(CUCONST_LIBRARY=SHIM), timeout=60)
    assert result.returncode == 6


def test_nested_runs(tool):
    says(tool("run", "--", TOOL, "run", "--", sys.executable, "-c", STATUS.format("1, 1, 0, 0")), "", 86)
