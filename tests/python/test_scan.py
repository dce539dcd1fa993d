"""cuconst scan: what each kernel of a file stores through, and what is said of files that hold none."""

import json
import pathlib
import shutil
import struct

import pytest

HERE = pathlib.Path(__file__).resolve().parent
KERNELS = HERE.parent / "kernels"
PTX = KERNELS / "ptx" / "nvcc_o3.ptx"
CUBIN = KERNELS / "differ" / "sm_90.cubin"


def fatbin(*entries):
    """A container of unpacked entries: (kind, sm, bytes)."""
    body = b""
    for kind, sm, payload in entries:
        payload += b"\0" * (-len(payload) % 8)
        body += struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, 64, len(payload), 0, 0, 0, 0, sm, 0, 0, 1, 0, 0) + payload
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_one_line_for_each_kernel_sorted(tool):
    result = tool("scan", PTX)
    lines = result.stdout.splitlines()
    assert (result.returncode, result.stderr) == (0, "")
    assert lines == sorted(lines) and len(lines) == 23
    assert "copy [ptx sm_90]: stores 1! loads 0 none 2" in lines
    assert "array [ptx sm_90]: stores 0-3 loads 5 none 4" in lines
    assert any(line.startswith("table [ptx sm_90]: indirect (stores through an address loaded from memory, line ") for line in lines)


def test_a_kernel_that_stores_through_no_parameter_is_clean(tool, tmp_path):
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.entry look(.param .u64 a)\n{\n.reg .b64 %a; .reg .b32 %r;\n"
                    "ld.param.u64 %a,[a]; ld.global.u32 %r,[%a]; ret;\n}\n")
    assert tool("scan", file).stdout == "look [ptx sm_80]: clean loads 0\n"


def test_filters(tool):
    assert tool("scan", "--kernel", "c*", PTX).stdout.count("\n") == 3
    assert tool("scan", "--arch", "sm_90", PTX).stdout == tool("scan", PTX).stdout
    result = tool("scan", "--kernel", "nobody", PTX)
    assert (result.returncode, result.stdout) == (0, "") and "no such kernel" in result.stderr
    assert tool("scan", "--arch", "sm_80", PTX).stdout == ""


def test_json(tool):
    result = tool("scan", "--format=json", "--kernel", "[ct]*", PTX)
    kernels = {line["kernel"]: line for line in map(json.loads, result.stdout.splitlines())}
    assert set(kernels) == {"calls", "chosen", "copy", "table", "through_shared"}
    copy = kernels["copy"]
    assert list(copy) == ["file", "arch", "kernel", "demangled", "verdict", "reason", "params", "indirect", "stores"]
    assert (copy["file"], copy["arch"], copy["demangled"], copy["verdict"], copy["reason"]) == (str(PTX), "compute_90", "copy", "ok", None)
    assert [(p["index"], p["offset"], p["size"]) for p in copy["params"]] == [(0, 0, 8), (1, 8, 8), (2, 16, 4)]
    assert [p["slots"] for p in copy["params"]] == [[{"offset": 0, "load": True, "store": False}], [{"offset": 8, "load": False, "store": True}],
                                                    [{"offset": 16, "load": False, "store": False}]]
    assert copy["indirect"] == [] and [(s["op"], s["bases"]) for s in copy["stores"]] == [("st.global", [8])]
    assert "st.global" in PTX.read_text().splitlines()[copy["stores"][0]["offset"] - 1]
    assert kernels["table"]["verdict"] == "unknown" and kernels["table"]["indirect"] == ["table"] and kernels["table"]["reason"]
    assert tool("scan", "--json", "--kernel", "[ct]*", PTX).stdout == result.stdout


def test_json_of_machine_code(tool):
    """The same parameters as in PTX, structures slot by slot, and all bases of a store."""
    cubin = KERNELS / "cubins" / "tricky_90.cubin"
    kernels = {line["kernel"]: line for line in map(json.loads, tool("scan", "--format", "json", cubin).stdout.splitlines())}
    two = kernels["select_two"]
    assert two["arch"] == "sm_90" and [p["index"] for p in two["params"]] == [0, 1, 2, 3]
    assert [s["bases"] for s in two["stores"]] == [[0, 8]]
    inner = kernels["struct_inner"]["params"]
    assert [(p["offset"], p["size"]) for p in inner] == [(0, 4), (8, 56)]
    assert [s["offset"] for s in inner[1]["slots"] if s["store"]] == [48] and len(inner[1]["slots"]) == 7
    mangled = tool("scan", "--format=json", KERNELS / "ptx" / "hand.ptx").stdout
    assert all(json.loads(line)["demangled"] for line in mangled.splitlines())


def test_several_files_and_formats(tool):
    both = tool("scan", PTX, CUBIN)
    assert both.returncode == 0 and both.stdout == tool("scan", PTX).stdout + tool("scan", CUBIN).stdout
    assert tool("scan", "--format=text", PTX).stdout == tool("scan", PTX).stdout
    assert tool("scan", "--format=xml", PTX).returncode == 64
    assert tool("scan", PTX, "/no/such/file").returncode == 66


def test_cubin_fatbin_and_host_file(tool, tmp_path):
    alone = tool("scan", CUBIN)
    assert alone.returncode == 0 and alone.stdout.count("[sm_90]") == 16
    both = tmp_path / "k.fatbin"
    both.write_bytes(fatbin((2, 90, CUBIN.read_bytes()), (1, 90, PTX.read_bytes()), (8, 90, b"something else")))
    result = tool("scan", both)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.count("[sm_90]") == 16 and result.stdout.count("[ptx sm_90]") == 23
    host = tmp_path / "lib.so"
    shutil.copy("/bin/true", host)
    with host.open("ab") as file:
        file.write(both.read_bytes())
    assert tool("scan", host).stdout == result.stdout


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"hello\n", b"\177ELF", b"{"])
def test_no_image(tool, tmp_path, content):
    file = tmp_path / "x"
    file.write_bytes(content)
    result = tool("scan", file)
    assert (result.returncode, result.stdout) == (65, "")
    assert "holds no device code" in result.stderr


def test_ptx_without_a_kernel(tool, tmp_path):
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.0\n.target sm_80\n.address_size 64\n")
    result = tool("scan", file)
    assert (result.returncode, result.stdout) == (0, "") and "holds no kernel" in result.stderr


def test_host_program_without_device_code(tool):
    assert tool("scan", "/bin/true").returncode == 65


def test_damaged_images_are_said(tool, tmp_path):
    file = tmp_path / "cut.cubin"
    file.write_bytes(CUBIN.read_bytes()[:5000])
    result = tool("scan", file)
    assert result.returncode == 65 and "damaged" in result.stderr
    file = tmp_path / "cut.ptx"
    file.write_text(PTX.read_text()[:4000])
    result = tool("scan", file)
    assert result.returncode == 65 and "damaged" in result.stderr
    assert "clean" not in result.stdout and "stores 1!" not in result.stdout.replace("indirect", "")


def test_names_cannot_steer_a_terminal(tool, tmp_path):
    cubin = CUBIN.read_bytes()
    file = tmp_path / "x.cubin"
    file.write_bytes(cubin.replace(b"\0k10\0", b"\0\x1b10\0"))
    assert "\x1b" not in tool("scan", file).stdout
    for line in tool("scan", "--json", file).stdout.splitlines():
        json.loads(line)


@pytest.mark.parametrize("arguments, message", [
    ((), "no file"),
    (("--arch",), "--arch: needs a value"),
    (("--arch", "90", "x"), "--arch 90: must be a machine"),
    (("--walk", "x"), "unknown option"),
])
def test_wrong_command_line(tool, arguments, message):
    result = tool("scan", *arguments)
    assert (result.returncode, result.stdout) == (64, "")
    assert message in result.stderr


def test_file_that_is_not_there(tool, tmp_path):
    result = tool("scan", tmp_path / "none")
    assert result.returncode == 66 and "No such file" in result.stderr
    assert tool("scan", tmp_path).returncode == 66


def test_help(tool):
    result = tool("scan", "--help")
    assert result.returncode == 0 and "--json" in result.stdout


def test_values_of_parameters(tool, tmp_path):
    file = tmp_path / "k.ptx"
    file.write_text(".version 8.0\n.target sm_80\n.address_size 64\n.entry batched(.param .u64 out, .param .u64 table, .param .u32 mode)\n{\n"
                    ".reg .b64 %a, %t; .reg .b32 %m; .reg .pred %p;\nld.param.u64 %a,[out]; ld.param.u64 %t,[table]; ld.param.u32 %m,[mode];\n"
                    "setp.eq.u32 %p, %m, 0; @%p bra DONE; ld.global.u64 %a,[%t];\nDONE: st.global.u32 [%a],1; ret;\n}\n")
    assert tool("scan", "--param", "16=0", "--param", "0=77", file).stdout == "batched [ptx sm_80]: stores 0! none 1-2 for 16=0\n"
    assert tool("scan", "--param", "0x10=1", file).stdout == tool("scan", file).stdout
    kernel = json.loads(tool("scan", "--json", "--param", "16=0", file).stdout)
    assert (kernel["verdict"], kernel["for"], [s["bases"] for s in kernel["stores"]]) == ("ok", [{"offset": 16, "value": 0}], [[0]])
    assert "for" not in json.loads(tool("scan", "--json", "--param", "16=1", file).stdout)
    for wrong in "16", "17=0", "4096=0", "16=", "=1", "16=-1", "-4=1", "16=0x100000000", "16=1x":
        assert tool("scan", "--param=" + wrong, file).returncode == 64
