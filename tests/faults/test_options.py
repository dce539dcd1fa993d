"""Options and suppression files with errors: one clear line each, and the program goes on as it would without."""
import pytest

from harness import HERE, kinds, records, scene

BAD = {
    "unknown": ("lgo=x", "option lgo: is not known; did you mean log? (help=1 lists all)"),
    "no_value": ("mode", "option mode: needs a value: name=value"),
    "bad_mode": ("mode=denny", "option mode=denny: must be log, deny or strict; did you mean deny?"),
    "bad_number": ("exitcode=256", "option exitcode=256: needs a whole number from 1 to 255"),
    "negative": ("site_limit=-1", "option site_limit=-1: needs a whole number"),
    "bad_switch": ("text=maybe", "option text=maybe: must be 0 or 1"),
    "no_name": ("=1", "option : is not known (help=1 lists all)"),
    "open_quote": ("log='x", "option log: the closing quote is missing"),
    "after_quote": ("log='x'y", "option log: a ':' must follow the closing quote"),
    "relative_cache": ("cache=here", "option cache=here: must be an absolute folder, or 0"),
    "empty_file": ("log=", "option log: needs a file name"),
    "huge": ("log=" + "x" * 100000, "option log: the value is too long"),
    "huge_name": ("n" * 100000 + "=1", "option " + "n" * 64),
    "binary": ("\x01\x1b[2J\x7f=\x02", "option "),
}


@pytest.mark.parametrize("text,line", BAD.values(), ids=BAD)
def test_one_line_and_the_program_goes_on(text, line, tmp_path):
    done = scene("outputs", "innocent", options=text, cwd=tmp_path)
    assert (done.status, done.out) == (0, "done\n")
    said, = done.err.splitlines()
    assert said.startswith("cuconst: CUCONST_OPTIONS: " + line), said
    assert len(said) < 400 and said.isprintable()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", ":::", "mode=log:", "mode=strict:mode=log", "text=yes:color=0"],
                         ids=["empty", "colons", "trailing", "twice", "words"])
def test_nothing_to_say(text):
    done = scene("outputs", "innocent", options=text)
    assert (done.status, done.out, done.err) == (0, "done\n", "")


def test_the_good_options_next_to_a_bad_one_count(tmp_path):
    done = scene("outputs", "violate", 1, options=f"mode=strict:zzzz=1:exitcode=7:text=0:log={tmp_path}/log")
    assert done.status == 7 and done.out == ""
    assert done.err.splitlines()[0] == "cuconst: CUCONST_OPTIONS: option zzzz: is not known (help=1 lists all)"
    assert kinds(records(tmp_path)) == {"violation": 1, "summary": 1}


def padded_ptx(folder):
    """The kernels as an image that is large enough for results on disk."""
    path = folder / "kernels.ptx"
    path.write_bytes((HERE.parent / "misuse" / "kernels.ptx").read_bytes() + b"\n" * 20000)
    return path


@pytest.mark.parametrize("order", ["log={0}/log:cache={0}/kept", "cache={0}/kept:log={0}/log"], ids=["log_first", "cache_first"])
def test_the_log_and_the_cache_are_two_places(order, tmp_path):
    options = "mode=deny:text=0:" + order.format(tmp_path)
    done = scene("outputs", "refused_kernel", options=options, MISUSE_PTX=padded_ptx(tmp_path))
    assert (done.status, done.out, done.err) == (0, "done\n", "")
    assert kinds(records(tmp_path)) == {"violation": 1, "summary": 1}
    # Of the one kernel what it does for any values, and for those of the launch.
    assert len(list((tmp_path / "kept").iterdir())) == 2


def test_no_cache(tmp_path):
    (tmp_path / "home").mkdir()
    done = scene("outputs", "refused_kernel", options="mode=deny:text=0:cache=0", MISUSE_PTX=padded_ptx(tmp_path),
                 HOME=tmp_path / "home", XDG_CACHE_HOME=tmp_path / "home", cwd=tmp_path / "home")
    assert (done.status, done.out, done.err) == (0, "done\n", "")
    assert list((tmp_path / "home").iterdir()) == []


def test_a_limit_for_files_does_not_end_the_program(tmp_path):
    done = scene("outputs", "refused_kernel", options=f"mode=deny:text=0:cache={tmp_path}/kept", MISUSE_PTX=padded_ptx(tmp_path),
                 FILE_LIMIT=0)
    assert (done.status, done.out, done.err) == (0, "done\n", "")
    assert not (tmp_path / "kept").exists()


def test_bytes_that_are_no_text(tmp_path):
    done = scene("outputs", "innocent", options=b"mode=\xff\xfe:log=\xc3\x28".decode(errors="surrogateescape"), cwd=tmp_path)
    assert (done.status, done.out) == (0, "done\n")
    assert done.err.startswith("cuconst: CUCONST_OPTIONS: option mode=")


def test_help():
    done = scene("outputs", "innocent", options="help=1")
    assert (done.status, done.out) == (0, "done\n")
    lines = done.err.splitlines()
    assert lines[0].startswith("cuconst: options, as CUCONST_OPTIONS=")
    named = {line.split("=")[0].strip() for line in lines[1:]}
    assert {"mode", "log", "exitcode", "suppressions", "help"} <= named


def suppressed(folder, text, *arguments, program="outputs", mode="log"):
    path = folder / "suppressions"
    path.write_bytes(text.encode("latin-1"))
    return scene(program, *arguments, options=f"mode={mode}:log={folder}/log:suppressions={path}")


KINDS = ["api:cuMemsetD8*", "label:p", "label:[o-q]", "library:faults_outputs", "api:*"]


@pytest.mark.parametrize("mode", ["log", "deny", "strict"])
@pytest.mark.parametrize("line", KINDS)
def test_a_suppressed_call_passes_in_every_mode(line, mode, tmp_path):
    done = suppressed(tmp_path, f"# on purpose\n\n{line}\n", "suppressed", mode=mode)
    assert (done.status, done.out) == (0, "done\n"), done
    summary, = records(tmp_path)
    assert (summary["kind"], summary["violations"], summary["suppressed"]) == ("summary", 0, 2)


@pytest.mark.parametrize("line", ["kernel:fill", "kernel:f*l", "api:cuLaunchKernel", "label:p"])
@pytest.mark.parametrize("mode", ["log", "strict"])
def test_a_suppressed_kernel(line, mode, tmp_path):
    done = suppressed(tmp_path, line, "suppressed_kernel", mode=mode)
    assert (done.status, done.out) == (0, "done\n"), done
    summary, = records(tmp_path)
    assert (summary["violations"], summary["suppressed"]) == (0, 1)


@pytest.mark.parametrize("line", ["api:cuMemsetD16*", "label:q", "library:libother.so", "kernel:*", "python:*:main"])
def test_what_does_not_match_is_no_excuse(line, tmp_path):
    done = suppressed(tmp_path, line, "violate", 1, mode="strict")
    assert done.status == 86, done


BAD_LINES = {
    "no_colon": ("label", ':2: needs kind:glob, not "label"'),
    "unknown_kind": ("file:x", ':2: kinds are kernel, library, api, label and python, not "file"'),
    "no_glob": ("api:", ":2: the glob is missing"),
    "open_set": ("api:[a", ":2: a ']' is missing in \"[a\""),
    "zero": ("label:q\0label:p", ":2: a line holds a zero byte"),
    "binary": ("\x01\xff", ':2: needs kind:glob, not "'),
    "python": ("python:main", ':2: python needs file.py:function, not "main"'),
}


@pytest.mark.parametrize("text,complaint", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_said_and_the_rest_counts(text, complaint, tmp_path):
    done = suppressed(tmp_path, f"# first\n{text}\nlabel:p\n", "suppressed")
    said, = done.said()
    assert said.startswith(f"cuconst: suppressions: {tmp_path}/suppressions{complaint}")
    assert records(tmp_path)[-1]["suppressed"] == 2
    assert (done.status, done.out) == (0, "done\n")


@pytest.mark.parametrize("make,why", [(lambda path: None, "No such file or directory"),
                                      (lambda path: path.mkdir(), "Is a directory"),
                                      (lambda path: path.write_bytes(b"#" * (2 << 20)), "File too large"),
                                      (lambda path: path.symlink_to("/dev/zero"), "Invalid argument")],
                         ids=["missing", "folder", "huge", "device"])
def test_a_file_that_cannot_be_read(make, why, tmp_path):
    path = tmp_path / "suppressions"
    make(path)
    done = scene("outputs", "violate", 1, options=f"log={tmp_path}/log:suppressions={path}")
    assert (done.status, done.out) == (0, "done\n")
    assert done.said()[0] == f"cuconst: suppressions {path} cannot be read ({why}): nothing is suppressed"
    assert kinds(records(tmp_path, "log")) == {"violation": 1, "summary": 1}
