"""Logs that cannot be written, descriptors that go away, processes that end early: the program never notices, and what was recorded is whole."""
import json
import os
import shutil
import signal
import stat
import subprocess
import time

import pytest

from harness import HERE, PROGRAMS, environment, kinds, records, scene, turn

UNLIMITED = "site_limit=1000000"


def quiet(folder):
    return f"text=0:log={folder}/log.%p:{UNLIMITED}"


def test_log_in_a_missing_folder(tmp_path):
    done = scene("outputs", "violate", 2, options=f"log={tmp_path}/no/such/log")
    assert (done.status, done.out) == (0, "done\n")
    assert done.said()[0] == f"cuconst: log {tmp_path}/no/such/log cannot be opened (No such file or directory): " \
                             "records go to stderr only"
    assert done.err.count("cannot be opened") == 1
    assert done.err.count("cuconst: violation: ") == 2


def test_log_in_an_unwritable_folder(tmp_path):
    # Where nobody can reach the programs and libraries: pytest's own folders are closed to others.
    place = tmp_path / "closed"
    place.mkdir(mode=0o555)
    for part in [place, *place.parents][:4]:
        if str(part).startswith("/tmp/"):
            os.chmod(part, part.stat().st_mode | stat.S_IXOTH)
    # The checkout may be closed to others, too.
    kernels = shutil.copyfile(HERE.parent / "misuse" / "kernels.ptx", tmp_path / "kernels.ptx")
    kernels.chmod(0o444)
    done = scene("outputs", "unprivileged", 1, options=f"log={place}/log", MISUSE_PTX=kernels)
    assert (done.status, done.out) == (0, "done\n"), done
    assert f"cuconst: log {place}/log cannot be opened (Permission denied): records go to stderr only" in done.said()
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("log", [".", "x" * 5000, "/dev/null/log"], ids=["folder", "too_long", "under_a_file"])
def test_log_that_is_no_file(log, tmp_path):
    done = scene("outputs", "violate", 1, options=f"log={log}", cwd=tmp_path)
    assert (done.status, done.out) == (0, "done\n")
    complaints = [line for line in done.said() if line.startswith(("cuconst: log ", "cuconst: CUCONST_OPTIONS: option log"))]
    assert len(complaints) == 1, done.err
    assert "cuconst: violation: " in done.err


def test_full_disk(tmp_path):
    done = scene("outputs", "violate", 20, options=f"text=0:log=/dev/full:{UNLIMITED}")
    assert (done.status, done.out) == (0, "done\n")
    lines = done.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("cuconst: summary: ")
    assert "; 21 records lost by the log (No space left on device)" in lines[0], lines


def test_file_size_limit(tmp_path):
    """The record that crosses the limit is cut; SIGXFSZ does not reach the program; the others are lost and counted."""
    done = scene("outputs", "limited", 10000, options=quiet(tmp_path))
    assert (done.status, done.out) == (0, "done\n"), done
    path, = tmp_path.glob("log.*")
    lines = path.read_text().splitlines()
    assert path.stat().st_size == 10000
    assert all(json.loads(line)["kind"] == "violation" for line in lines[:-1]) and len(lines) > 3
    assert "records lost by the log (File too large)" in done.err


def test_full_file_system(tmp_path):
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", tmp_path],
                                      capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        done = scene("outputs", "violate", 40, options=quiet(tmp_path))
        assert (done.status, done.out) == (0, "done\n")
        path, = tmp_path.glob("log.*")
        lines = path.read_text().splitlines()
        assert len(lines) > 3 and all(json.loads(line) for line in lines[:-1])
        assert "No space left on device" in done.err
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_fifo_that_nobody_reads(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    done = scene("outputs", "violate", 1, options=f"log={tmp_path}/fifo", timeout=20)
    assert (done.status, done.out) == (0, "done\n")
    assert "fifo cannot be opened" in done.said()[0]


def test_fifo_whose_reader_stopped(tmp_path):
    """Full, it loses records and blocks nobody."""
    os.mkfifo(tmp_path / "fifo")
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = scene("outputs", "violate", 2000, options=f"text=0:log={tmp_path}/fifo:{UNLIMITED}", timeout=30)
    finally:
        os.close(reader)
    assert (done.status, done.out) == (0, "done\n")
    assert "Resource temporarily unavailable" in done.err


def test_fifo_whose_reader_left(tmp_path):
    os.mkfifo(tmp_path / "fifo")
    reader = subprocess.Popen(["head", "-c", "100", tmp_path / "fifo"], stdout=subprocess.DEVNULL)
    done = scene("outputs", "violate", 200, options=f"text=0:log={tmp_path}/fifo:{UNLIMITED}", timeout=30)
    reader.kill()
    reader.wait()
    assert (done.status, done.out) == (0, "done\n"), done


@pytest.mark.parametrize("name", ["closed_before", "closed_after"])
def test_all_descriptors_closed(name, tmp_path):
    done = scene("outputs", name, options=quiet(tmp_path))
    assert done.status == 0
    found = records(tmp_path)
    assert kinds(found) == {"violation": 3, "summary": 1}


@pytest.mark.parametrize("name", ["closed_before", "closed_after"])
def test_all_descriptors_closed_and_text_wanted(name, tmp_path):
    done = scene("outputs", name, options=f"log={tmp_path}/log:{UNLIMITED}")
    assert done.status == 0
    assert kinds(records(tmp_path))["violation"] == 3
    assert done.err.count("cuconst: violation") == (0 if name == "closed_before" else 1)


def test_started_with_stdio_closed(tmp_path):
    with turn():
        done = subprocess.run(["sh", "-c", f'exec "{PROGRAMS}/faults_outputs" violate 2 <&- >&- 2>&-'],
                              env=environment(f"log={tmp_path}/log"), timeout=30)
    assert done.returncode == 0
    assert kinds(records(tmp_path)) == {"violation": 2, "summary": 1}


def test_descriptors_that_became_the_programs(tmp_path):
    own = tmp_path / "own"
    done = scene("outputs", "reused", own, options=f"log={tmp_path}/log:text=0")
    assert (done.status, done.out) == (0, "done\n"), done
    assert own.read_bytes() == b""
    assert kinds(records(tmp_path)) == {"violation": 3, "summary": 1}


def test_stdio_that_became_the_programs(tmp_path):
    own = tmp_path / "own"
    done = scene("outputs", "stdio_reused", own, options=f"log={tmp_path}/log")
    assert done.status == 0, done
    assert own.read_bytes() == b""
    assert kinds(records(tmp_path)) == {"violation": 2, "summary": 1}


def test_two_processes_and_a_fork_on_one_log(tmp_path):
    env = environment(f"text=0:log={tmp_path}/log:{UNLIMITED}")
    with turn():
        both = [subprocess.Popen([PROGRAMS / "faults_outputs", "family", "2000"], env=env) for _ in range(2)]
        assert [one.wait(60) for one in both] == [0, 0]
    found = records(tmp_path)
    assert kinds(found) == {"violation": 8000, "summary": 4}
    writers = {}
    for record in found:
        writers.setdefault(record["pid"], []).append(record["seq"])
    assert len(writers) == 4 and all(seen == list(range(1, 2002)) for seen in writers.values())


@pytest.mark.parametrize("delay", [0.05, 0.15, 0.3])
def test_killed_in_the_middle(delay, tmp_path):
    with turn():
        running = subprocess.Popen([PROGRAMS / "faults_outputs", "forever"],
                                   env=environment(f"text=0:log={tmp_path}/log:{UNLIMITED}"))
        deadline = time.monotonic() + 20
        while not list(tmp_path.glob("log")) and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(delay)
        running.kill()
        assert running.wait(20) == -signal.SIGKILL
    *lines, last = (tmp_path / "log").read_text().split("\n")
    seen = [json.loads(line) for line in lines]
    assert [record["seq"] for record in seen] == list(range(1, len(seen) + 1)) and seen
    # The kernel ends a write of a killed process at a page of the file: the last line alone may be cut, and only there.
    assert last == "" or (tmp_path / "log").stat().st_size % 4096 == 0


def test_underscore_exit(tmp_path):
    done = scene("outputs", "quit", options=quiet(tmp_path))
    assert done.status == 3
    assert kinds(records(tmp_path)) == {"violation": 3}


def test_a_hundred_thousand_in_little_space_and_time(tmp_path):
    done = scene("outputs", "violate", 100000, options=f"log={tmp_path}/log", timeout=30)
    assert (done.status, done.out) == (0, "done\n")
    assert done.seconds < 20
    assert (tmp_path / "log").stat().st_size < 100000 and len(done.err) < 20000
    assert records(tmp_path)[-1]["violations"] == 100000


def test_abort_on_error_leaves_a_record_and_a_signal(tmp_path):
    done = scene("outputs", "violate", 1, options=f"mode=strict:abort_on_error=1:{quiet(tmp_path)}")
    assert done.status == -signal.SIGABRT
    assert done.out == ""
    assert kinds(records(tmp_path)) == {"violation": 1, "summary": 1}


@pytest.mark.parametrize("code", [1, 86, 255])
def test_exitcode(code, tmp_path):
    done = scene("outputs", "violate", 1, options=f"mode=strict:exitcode={code}:{quiet(tmp_path)}")
    assert (done.status, done.out) == (code, "")
    found = records(tmp_path)
    assert kinds(found) == {"violation": 1, "summary": 1} and found[0]["action"] == "stopped"


@pytest.mark.parametrize("more,status", [("", 86), (":abort_on_error=1", -signal.SIGABRT)], ids=["exit", "abort"])
def test_strict_ends_a_process_that_waits(more, status, tmp_path):
    done = scene("outputs", "blocked", options=f"mode=strict:{quiet(tmp_path)}{more}", timeout=25)
    assert done.status == status, done
    assert done.seconds < 10
    assert kinds(records(tmp_path)) == {"violation": 1, "summary": 1}


def test_errno_is_the_programs(tmp_path):
    assert scene("outputs", "errno", options="log=/no/such/folder/log").out == "done\n"


def test_log_folder_removed_meanwhile(tmp_path):
    """The file that was opened is written to the end, wherever it is."""
    gone = tmp_path / "gone"
    gone.mkdir()
    with turn():
        running = subprocess.Popen([PROGRAMS / "faults_outputs", "violate", "100000"], env=environment(f"text=0:log={gone}/log"),
                                   stdout=subprocess.PIPE)
        shutil.rmtree(gone)
        assert running.communicate(timeout=30)[0] == b"done\n" and running.returncode == 0
