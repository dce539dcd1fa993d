"""cuconst report: what is summarised, and what is done with logs that are not what they should be."""

import copy
import json
import random

import pytest

RECORD = {
    "schema": 1, "seq": 1, "time": "2026-05-01T10:00:00.000001Z", "host": "node1", "pid": 100, "tid": 100, "rank": 0, "mode": "log", "kind": "violation",
    "evidence": "changed", "action": "logged", "api": "cuLaunchKernel", "outer_api": None, "outer_note": None,
    "kernel": {"name": "_Z3addPf", "demangled": "add(float*)", "argument": 0, "offset": 0, "value": "0x7000", "api": "cuLaunchKernel"},
    "written": {"start": "0x7000", "end": "0x7004", "bytes": 4, "exact": True},
    "range": {"label": "weights", "start": "0x7000", "end": "0x8000", "bytes": 4096, "device": 0, "handle": 1, "site": {"file": "/home/u/train.py", "function": "main", "line": 7}},
    "stream": "0x0", "graph": None, "graph_node": None, "library": "cupy.so", "unverified_launches": 0, "result": 0,
    "python": [
        {"file": "/usr/lib/python3.12/site-packages/cupy/core.py", "function": "fill", "line": 3},
        {"file": "/home/u/train.py", "function": "step", "line": 42},
        {"file": "/home/u/train.py", "function": "main", "line": 9},
    ],
    "native": [], "candidates": [], "cut": False,
}
FOLDED = {
    "schema": 1, "seq": 9, "time": "2026-05-01T11:00:00.000000Z", "host": "node1", "pid": 100, "tid": 100, "rank": 0, "mode": "log", "kind": "folded",
    "of": "violation", "action": "logged", "api": "cuLaunchKernel", "outer_api": None, "kernel": "_Z3addPf", "label": "weights", "handle": 1,
    "site": {"file": "/home/u/train.py", "function": "step", "line": 42}, "count": 1000, "folded": 990,
}
SUMMARY = {"schema": 1, "seq": 99, "time": "2026-05-01T12:00:00.000000Z", "host": "node1", "pid": 100, "kind": "summary", "violations": 1, "not_seen": None}


def record(base=RECORD, **changes):
    made = copy.deepcopy(base)
    for name, value in changes.items():
        if isinstance(value, dict) and isinstance(made.get(name), dict):
            made[name].update(value)
        else:
            made[name] = value
    return made


@pytest.fixture
def report(tool, tmp_path):
    def run(*items, options=(), raw=None):
        log = tmp_path / "log.jsonl"
        log.write_bytes(raw if raw is not None else b"".join(json.dumps(item).encode() + b"\n" for item in items))
        return tool("report", *options, log)

    return run


def test_one_record_in_full(report):
    result = report(RECORD, SUMMARY)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == (
        "1 violation (0 denied), 0 inconclusive, 0 frees, 0 ended unverified\n"
        "1 log, 2 records, 1 process\n"
        "\n"
        "1 violation at /home/u/train.py:42 in step\n"
        "    wrote into   weights\n"
        "    protected at /home/u/train.py:7 in main\n"
        "    call         cuLaunchKernel\n"
        "    kernel       add(float*)\n"
        "    library      cupy.so\n"
        "    action       logged 1\n"
        "    rank         0\n"
        "    time         2026-05-01T10:00:00.000001Z\n"
        "\n"
    )


def test_an_empty_log(report):
    result = report(raw=b"")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "0 violations (0 denied), 0 inconclusive, 0 frees, 0 ended unverified\n1 log, 0 records, 0 processes\n\n"


def test_grouping_counts_and_times(report):
    result = report(
        record(time="2026-05-01T10:00:05.000000Z"),
        record(time="2026-05-01T10:00:03.000000Z", action="denied", range={"label": "bias"}, api="cuMemcpyDtoD_v2", kernel=None),
        record(python=[{"file": "/home/u/other.py", "function": "f", "line": 1}], kind="freed", action="none", api="cuMemFree_v2", kernel=None),
        record(outer_api="cufftExecC2C", outer_note="idata=odata"),
    )
    assert "3 violations (1 denied), 0 inconclusive, 1 free," in result.stdout
    assert "3 violations at /home/u/train.py:42 in step\n    wrote into   weights; bias\n" in result.stdout
    assert "    call         cuLaunchKernel; cuMemcpyDtoD_v2; cufftExecC2C(idata=odata)\n" in result.stdout
    assert "    action       logged 2, denied 1\n" in result.stdout
    assert "    time         2026-05-01T10:00:00.000001Z to 2026-05-01T10:00:05.000000Z\n" in result.stdout
    assert "1 free of protected memory at /home/u/other.py:1 in f\n" in result.stdout
    assert result.stdout.index("train.py:42 in step") < result.stdout.index("other.py:1 in f")
    assert "1 process, 1 without a last line (killed, or still running)" in result.stdout


def test_without_a_user_frame_it_is_the_library_and_the_call(report):
    result = report(record(python=[]), record(python=[], library="libfoo.so", api="cuMemcpyDtoD_v2", kernel=None))
    assert "1 violation at cupy.so, cuLaunchKernel\n" in result.stdout
    assert "1 violation at libfoo.so, cuMemcpyDtoD_v2\n" in result.stdout


def test_frames_of_libraries_only_name_the_innermost(report):
    frames = [{"file": f, "function": "f", "line": 1} for f in ("/usr/lib/python3.11/json/x.py", "/v/lib/python3.13t/y.py", "<frozen runpy>")]
    assert "at /usr/lib/python3.11/json/x.py:1 in f\n" in report(record(python=frames)).stdout
    frames.append({"file": "<stdin>", "function": "<module>", "line": 1})
    assert "at <stdin>:1 in <module>\n" in report(record(python=frames)).stdout


def test_folded_events_count_once_however_often_they_are_mentioned(report):
    ten = [record(seq=i) for i in range(10)]
    result = report(*ten, record(FOLDED, count=100, folded=90), FOLDED, FOLDED, SUMMARY)
    assert "1000 violations at /home/u/train.py:42 in step\n" in result.stdout
    assert "    action       logged 1000\n" in result.stdout
    assert "    folded       990 of these have no record of their own\n" in result.stdout


def test_folded_events_of_two_processes_and_of_a_reused_number(report):
    result = report(FOLDED, record(FOLDED, pid=101), record(FOLDED, pid=101, count=110, folded=100))
    assert "2080 violations at" in result.stdout


def test_folded_without_a_frame_find_their_place(report):
    result = report(record(python=[]), record(FOLDED, site=None), record(FOLDED, site=None, of=None, action=None, api=None, kernel=None, label=None, folded=5))
    assert "991 violations at cupy.so, cuLaunchKernel\n" in result.stdout
    assert "5 violations at other places, too many to be told apart\n" in result.stdout


def test_several_logs_and_standard_input(tool, tmp_path):
    for number in (1, 2):
        (tmp_path / f"{number}.jsonl").write_text(json.dumps(record(pid=number, rank=number)) + "\n")
    result = tool("report", tmp_path / "1.jsonl", "-", tmp_path / "2.jsonl", stdin=json.dumps(record(pid=3)) + "\n")
    assert result.returncode == 0
    assert "3 logs, 3 records, 3 processes" in result.stdout and "    rank         1; 0; 2\n" in result.stdout


def test_exit_code(report):
    assert report(RECORD, options=["--exit-code"]).returncode == 86
    assert report(record(kind="freed"), options=["--exit-code"]).returncode == 0
    assert report(FOLDED, options=["--exit-code"]).returncode == 86


def test_a_cut_last_line(report):
    whole = json.dumps(RECORD).encode()
    for length in (1, 20, len(whole) // 2, len(whole) - 1):
        result = report(raw=whole + b"\n" + whole[:length])
        assert result.returncode == 0 and "1 violation at" in result.stdout
        assert "1 last line is cut off" in result.stdout and "could not be read" not in result.stdout
    assert "cut off" not in report(raw=whole + b"\n" + whole).stdout


def test_garbage_is_counted_and_the_first_is_named(report, tmp_path):
    lines = [b"hello", json.dumps(RECORD).encode(), b"{}", b"[1]", b"\xff\xfe\x00", b"{\"schema\":1}", b"[" * 100000, b"7", b"null"]
    result = report(raw=b"\n".join(lines) + b"\n")
    assert result.returncode == 0 and "1 violation at" in result.stdout
    assert f"8 lines could not be read; the first: {tmp_path}/log.jsonl:1: not a value\n" in result.stdout


def test_a_file_that_is_no_log_is_told(report, tmp_path):
    result = report(raw=b"# A page\n\nof something else\n")
    assert result.returncode == 66
    assert result.stderr == f"cuconst: {tmp_path}/log.jsonl: no line is a record: is it what `cuconst run --log FILE` wrote?\n"
    assert report(raw=b"").returncode == 0 and report(raw=b'{"schema":1,').returncode == 0  # nothing happened, or the first line is cut off


def test_other_schemas_and_kinds(report):
    result = report(RECORD, record(schema=2), record(schema="1"), record(schema=-1), record(kind="surprise"))
    assert "3 records of another schema version than 1 were left out" in result.stdout
    assert "1 line could not be read; the first:" in result.stdout and "not a record" in result.stdout


def test_a_line_beyond_any_record(report):
    result = report(raw=b'"' + b"a" * (3 << 20) + b'"\n' + json.dumps(RECORD).encode() + b"\n")
    assert result.returncode == 0 and "1 violation at" in result.stdout and "longer than any record" in result.stdout


def test_fields_of_wrong_types_count_as_not_given(report):
    rng = random.Random(5)
    values = [None, True, 3, -1, 1.5e300, "text", [], {}, [1, {"file": 3}], {"file": "x"}, {"label": 5}, "", 2**70]
    items = []
    for _ in range(400):
        made = copy.deepcopy(rng.choice([RECORD, FOLDED, SUMMARY]))
        for name in rng.sample([n for n in made if n not in ("schema", "kind")], 5):
            made[name] = rng.choice(values)
        items.append(made)
    result = report(*items)
    assert (result.returncode, result.stderr) == (0, "")
    assert "400 records" in result.stdout


def test_nothing_from_a_log_steers_the_terminal(report):
    result = report(record(range={"label": "a\x1b[2Jb\x07\x7f\u009bc\n"}))
    assert "    wrote into   a\\x1b[2Jb\\x07\\x7f\\x9bc\\x0a\n" in result.stdout


def test_many_places_and_labels(report):
    items = [record(python=[{"file": "f.py", "function": "f", "line": i}]) for i in range(1, 3001)]
    items += [record(range={"label": f"label{i}"}) for i in range(50)]
    result = report(*items)
    assert result.stdout.count(" at f.py:") == 3000
    assert "50 violations at /home/u/train.py:42 in step\n    wrote into   label0; label1;" in result.stdout and "label11; ...\n" in result.stdout


def test_a_log_that_cannot_be_read(tool, tmp_path):
    good = tmp_path / "good"
    good.write_text(json.dumps(RECORD) + "\n")
    result = tool("report", "/nowhere/log", tmp_path, good)
    assert result.returncode == 66 and "1 violation at" in result.stdout
    assert result.stderr == f"cuconst: /nowhere/log: No such file or directory\ncuconst: {tmp_path}: Is a directory\n"


def test_what_was_not_seen_is_said(report):
    result = report(record(SUMMARY, not_seen="2 unknown entry points"), record(SUMMARY, pid=2, not_seen="2 unknown entry points"))
    assert result.stdout.count("not seen in a run: 2 unknown entry points\n") == 1


def test_what_last_lines_add_up_to(report):
    ends = [record(SUMMARY, pid=n, suppressed=n, unverified=10 * n, log_lost=100 * n) for n in (1, 2)]
    assert report(*ends).stdout.endswith(
        "3 suppressed\n"
        "30 checks could not be made, or had not come back at the end\n"
        "300 records are missing: they could not be written into the log\n"
    )


def test_candidates_of_a_graph(report):
    result = report(record(kernel=None, api="cuGraphLaunch", candidates=[{"name": "_Z1av", "demangled": "a()", "site": None}, {"name": "b"}, 5]))
    assert "    call         cuGraphLaunch\n    or one of    a(); b\n    library" in result.stdout


def test_source_lines_of_stores(report):
    stores = [{"kind": "STG", "offset": 112, "ptx_line": None, "file": "fill.cu", "line": 8}, {"kind": "RED", "offset": 128, "ptx_line": None, "file": None, "line": None}]
    result = report(record(stores=stores), record(stores=stores), record(stores=[{"kind": "STG", "file": "b.cu", "line": "x"}, 5]), record(stores="no list"))
    assert "    kernel       add(float*)\n    stores at    fill.cu:8 (STG); b.cu:0 (STG)\n" in result.stdout
    assert "stores at" not in report(RECORD).stdout
