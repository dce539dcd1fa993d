"""Every kind of write, in each mode: status, stdout, the first line of stderr, and the record with its Python line."""
import os
import re
import time
from dataclasses import dataclass

import pytest
from rig import TIMEOUT, VIOLATED

FRAME = """
{setup}
guard = protect((p, SIZE), label="weights")
def step():
    return {call}  # HERE
def main():
    error = step()[0]
    synchronize()
    print(error.name, digest(p), digest(q))
main()
"""


@dataclass
class Write:
    """`call` writes `size` bytes of p from `start` on, gaps between rows not counted. `kernel` and `node` say who did it beneath the call."""
    api: str
    call: str
    size: int
    start: int = 0
    setup: str = ""
    kernel: str = None
    argument: int = 0
    node: str = None
    changed: bool = False  # found by comparing bytes

    def __post_init__(self):
        self.changed = self.changed or self.kernel is not None

    @property
    def writer(self):
        if self.kernel:
            return f"kernel {self.kernel} ({self.api}, argument {self.argument})"
        return f"{self.api} ({self.node} node)" if self.node else self.api


COPY_2D = """
copy = driver.CUDA_MEMCPY2D()
copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
copy.srcDevice, copy.srcPitch, copy.dstDevice, copy.dstPitch = q, 64, p + 128, 256
copy.WidthInBytes, copy.Height = 16, 4
"""
COPY_3D = """
copy = driver.CUDA_MEMCPY3D()
copy.srcMemoryType = copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
copy.srcDevice, copy.srcPitch, copy.srcHeight = q, 64, 2
copy.dstDevice, copy.dstPitch, copy.dstHeight = p, 64, 2
copy.WidthInBytes, copy.Height, copy.Depth = 64, 2, 3
"""
CAPTURE = """
check(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
check({})
graph = check(driver.cuStreamEndCapture(stream))
executable = check(driver.cuGraphInstantiate(graph, 0))
"""
MEMOP = """
operation = driver.CUstreamBatchMemOpParams()
operation.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
operation.writeValue.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WRITE_VALUE_32
operation.writeValue.address, operation.writeValue.value = p + 8, 7
"""
GRAPH_LAUNCH = "driver.cuGraphLaunch(executable, stream)"

WRITES = {
    "copy from the host": Write("cuMemcpyHtoD_v2", "driver.cuMemcpyHtoD(p + 16, b'x' * 100, 100)", 100, 16),
    "asynchronous copy from the host": Write("cuMemcpyHtoDAsync_v2", "driver.cuMemcpyHtoDAsync(p, b'x' * 100, 100, stream)", 100),
    "copy": Write("cuMemcpyDtoD_v2", "driver.cuMemcpyDtoD(p, q, SIZE)", 4096),
    "copy over the end": Write("cuMemcpyDtoD_v2", "driver.cuMemcpyDtoD(p + 4000, q, 96)", 96, 4000),
    "asynchronous copy": Write("cuMemcpyDtoDAsync_v2", "driver.cuMemcpyDtoDAsync(p, q, 64, stream)", 64),
    "copy by address": Write("cuMemcpy", "driver.cuMemcpy(p, q, 64)", 64),
    "asynchronous copy by address": Write("cuMemcpyAsync", "driver.cuMemcpyAsync(p, q, 64, stream)", 64),
    "pitched copy": Write("cuMemcpy2D_v2", "driver.cuMemcpy2D(copy)", 64, 128, COPY_2D),
    "asynchronous pitched copy": Write("cuMemcpy2DAsync_v2", "driver.cuMemcpy2DAsync(copy, stream)", 64, 128, COPY_2D),
    "copy of a volume": Write("cuMemcpy3D_v2", "driver.cuMemcpy3D(copy)", 384, 0, COPY_3D),
    "set of bytes": Write("cuMemsetD8_v2", "driver.cuMemsetD8(p + 1, 5, 9)", 9, 1),
    "set of words": Write("cuMemsetD32_v2", "driver.cuMemsetD32(p, 5, 9)", 36),
    "asynchronous set": Write("cuMemsetD16Async", "driver.cuMemsetD16Async(p, 5, 9, stream)", 18),
    "pitched set": Write("cuMemsetD2D8_v2", "driver.cuMemsetD2D8(p, 256, 5, 16, 4)", 64),
    "written value": Write("cuStreamWriteValue32_v2", "driver.cuStreamWriteValue32(stream, p + 4, 7, 0)", 4, 4),
    "batch of memory operations": Write("cuStreamBatchMemOp_v2", "driver.cuStreamBatchMemOp(stream, 1, [operation], 0)", 4, 8, MEMOP),
    "kernel": Write("cuLaunchKernel", "driver.cuLaunchKernel(*kernel('fill', p, 7, SIZE // 4))", 4096, kernel="fill"),
    "kernel, second argument": Write("cuLaunchKernel", "driver.cuLaunchKernel(*kernel('copy', q, p, 32))", 128, kernel="copy", argument=1),
    "kernel in a stream": Write("cuLaunchKernel", "driver.cuLaunchKernel(*kernel('fill', p + 64, 7, 4, where=stream))", 16, 64, kernel="fill"),
    "atomic": Write("cuLaunchKernel", "driver.cuLaunchKernel(*kernel('add_one', p, 3))", 3, kernel="add_one"),
    "captured copy": Write("cuGraphLaunch", GRAPH_LAUNCH, 64, setup=CAPTURE.format("driver.cuMemcpyDtoDAsync(p, q, 64, stream)"), node="memcpy"),
    "captured set": Write("cuGraphLaunch", GRAPH_LAUNCH, 64, setup=CAPTURE.format("driver.cuMemsetD8Async(p, 5, 64, stream)"), node="memset"),
    "captured kernel": Write("cuGraphLaunch", GRAPH_LAUNCH, 64, setup=CAPTURE.format("driver.cuLaunchKernel(*kernel('fill', p, 7, 16, where=stream))"), changed=True),
}
CASES = [pytest.param(write, id=name) for name, write in WRITES.items()]


def lines(write, verb, word):
    return f'cuconst: {word}: {write.writer} {verb} {write.size} bytes of read-only "weights"'


def check_record(record, write, program, action):
    assert (record["kind"], record["action"]) == ("violation", action)
    assert record["evidence"] == ("changed" if write.changed else "written")
    assert record["api"] == write.api and record["graph_node"] == write.node
    assert record["written"]["bytes"] == write.size and record["written"]["exact"]
    start = int(record["range"]["start"], 16)
    assert int(record["written"]["start"], 16) - start == write.start
    assert record["range"]["label"] == "weights" and record["range"]["bytes"] == 4096
    assert record["range"]["site"]["file"] == str(program.path) and record["range"]["site"]["function"] == "<module>"
    assert record["python"][0] == program.place("step"), record["python"]
    assert [frame["function"] for frame in record["python"]] == ["step", "main", "<module>"]
    if write.kernel:
        assert (record["kernel"]["name"], record["kernel"]["argument"]) == (write.kernel, write.argument)
    else:
        assert record["kernel"] is None
        assert sorted({kernel["name"] for kernel in record["candidates"]}) == ([] if write.kernel or not write.changed else ["fill"]), "a graph's nodes"


@pytest.mark.parametrize("write", CASES)
def test_log(program, write):
    made = program(FRAME.format(setup=write.setup, call=write.call))
    result = made.run("log")
    assert result.first == lines(write, "wrote", "violation"), result.stderr
    assert result.status == VIOLATED
    assert result.stdout == made.alone(), "in log the program does what it does alone"
    check_record(result.only, write, made, "logged")


@pytest.mark.parametrize("write", CASES)
def test_deny(program, write):
    made = program(FRAME.format(setup=write.setup, call=write.call))
    result = made.run("deny")
    assert result.status == VIOLATED
    assert result.stdout == "CUDA_ERROR_NOT_PERMITTED {1: 4096} {3: 4096}\n", "nothing was lost, and the program went on"
    assert (result.only["action"], result.only["evidence"], result.only["result"]) == ("denied", "written", 800)
    if write.changed:
        kernel, argument, detail = write.kernel or "fill", write.argument, "" if write.kernel else ", kernel node"
        assert result.first == f'cuconst: denied: kernel {kernel} ({write.api}, argument {argument}{detail}) would write read-only "weights"'
        assert result.only["kernel"]["verdict"] == "stores" and result.only["written"] is None
        assert result.only["stores"] and all(re.match("st|atom|red", store["kind"]) for store in result.only["stores"])
        assert result.only["python"][0] == made.place("step")
    else:
        assert result.first == lines(write, "would write", "denied"), result.stderr
        check_record(result.only, write, made, "denied")


@pytest.mark.parametrize("write", CASES)
def test_strict(program, write):
    made = program(FRAME.format(setup=write.setup, call=write.call))
    result = made.run("strict")
    assert result.first == lines(write, "wrote" if write.changed else "would write", "stopped"), result.stderr
    assert (result.status, result.stdout) == (VIOLATED, ""), "the process ended before it could print"
    check_record(result.only, write, made, "stopped")


READS = {
    "a kernel that reads": "driver.cuLaunchKernel(*kernel('copy', p, q, 32))",
    "a kernel beside it": "driver.cuLaunchKernel(*kernel('fill', q, 7, 32))",
    "a copy from it": "driver.cuMemcpyDtoD(q, p, SIZE)",
    "a copy of no bytes": "driver.cuMemcpyDtoD(p, q, 0)",
    "a copy beside it": "driver.cuMemcpyDtoD(q, q + 64, 64)",
    "a copy to the host": "driver.cuMemcpyDtoH(bytearray(64), p, 64)",
}


@pytest.mark.parametrize("mode", ["log", "deny", "strict"])
@pytest.mark.parametrize("call", READS.values(), ids=READS)
def test_no_write_no_word(program, call, mode):
    made = program(FRAME.format(setup="", call=call))
    result = made.run(mode)
    assert (result.status, result.first, result.records) == (0, "", []), result.stderr
    assert result.stdout == made.alone()


@pytest.mark.parametrize("mode", ["log", "strict"])
def test_a_store_of_the_value_that_was_there(program, mode):
    """Nothing changed, so nothing is said; deny refuses the launch, since it cannot know."""
    made = program(FRAME.format(setup="", call="driver.cuLaunchKernel(*kernel('fill', p, 0x01010101, 32))"))
    result = made.run(mode)
    assert (result.status, result.first, result.records) == (0, "", []), result.stderr
    assert made.run("deny").only["action"] == "denied"


@pytest.mark.parametrize("protect, options", [
    ("protect((p, SIZE), label='weights', verify_only=True)", ()),
    ("protect((p, SIZE), label='weights')", ("--option", "store_paths=0")),
], ids=["verify_only", "store_paths=0"])
def test_what_deny_does_not_refuse(program, protect, options):
    made = program(f"guard = {protect}\ncheck(driver.cuLaunchKernel(*kernel('fill', p, 7, SIZE // 4)))\nsynchronize()\n")
    result = made.run("deny", *options)
    assert result.first == 'cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 4096 bytes of read-only "weights"', result.stderr
    assert result.only["kernel"]["verdict"] == ("unknown" if options else "stores")


def test_a_suppressed_kernel_is_not_refused(program, tmp_path):
    (tmp_path / "known").write_text("kernel:fi*\n")
    made = program("guard = protect((p, SIZE))\ncheck(driver.cuLaunchKernel(*kernel('fill', p, 7, SIZE // 4)))\nsynchronize()\nprint(digest(p))\n")
    result = made.run("deny", "--suppressions", str(tmp_path / "known"))
    assert (result.status, result.first, result.stdout) == (0, "", "{0: 3072, 7: 1024}\n"), result.stderr


VERDICTS = {
    "clean": "kernel('copy', p, q, 32)",
    "stores": "kernel('fill', p + 1000, 0x01010101, 3)",
    "near": "kernel('fill', p + 2048, 7, 3)",
}


@pytest.mark.parametrize("verdict", VERDICTS)
def test_launches_are_counted_by_what_their_code_says(program, verdict):
    """In the range, beside it in the same allocation, and elsewhere, which no verdict counts. What only reads is judged once."""
    made = program("guard = protect((p, 2048), label='weights')\nimport cuconst\n"
                   f"for i in range(5): check(driver.cuLaunchKernel(*{VERDICTS[verdict]}))\n"
                   "check(driver.cuLaunchKernel(*kernel('fill', q, 7, 32)))\nsynchronize()\nprint(cuconst.stats())\n")
    counts = {name: int(re.search(rf"\b{name}=(\d+)", made.run("log").stdout).group(1)) for name in ("clean", "stores", "near", "unknown")}
    assert counts == {**dict.fromkeys(("clean", "stores", "near", "unknown"), 0), verdict: 1 if verdict == "clean" else 5}


def test_replays_are_a_record_each_until_they_fold(program):
    made = program(CAPTURE.format("driver.cuMemsetD8Async(p, 5, 64, stream)") + "\nguard = protect((p, SIZE), label='weights')\n"
                   "for i in range(25):\n    check(driver.cuGraphLaunch(executable, stream))  # HERE\nsynchronize()\n")
    result = made.run("log")
    full = [record for record in result.records if record["kind"] == "violation"]
    folded = [record for record in result.records if record["kind"] == "folded"]
    assert result.status == VIOLATED and len(full) == 10
    assert all(record["python"][0] == made.place("<module>") for record in full)
    assert folded[-1]["count"] == 25 and sum(record["folded"] for record in folded) == 15, folded
    assert result.summary["violations"] == 25


def test_a_captured_write_that_is_never_launched_is_none(program):
    made = program("guard = protect((p, SIZE), label='weights')\n" + CAPTURE.format("driver.cuMemsetD8Async(p, 5, 64, stream)"))
    result = made.run("strict")
    assert (result.status, result.first) == (0, "")


def test_strict_is_not_overtaken_by_a_program_that_synchronises(program):
    """The watcher finds the change and is held up by stderr, a full pipe: the program must not get past its next call meanwhile."""
    made = program("guard = protect((p, SIZE), label='weights')\nimport os, time\ncheck(driver.cuLaunchKernel(*kernel('fill', p, 7, 16, where=stream)))\n"
                   "time.sleep(0.5)\nsynchronize()\nprint('past it')\n")
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    with pytest.raises(BlockingIOError):
        while True:
            os.write(writer, b"." * 4096)
    os.set_blocking(writer, True)
    process = made.start("strict", stderr=writer)
    os.close(writer)
    time.sleep(1.2)
    with open(reader, "rb") as pipe:
        said = pipe.read().lstrip(b".").decode()
    stdout, _ = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, stdout) == (VIOLATED, ""), said
    assert said.startswith('cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 64 bytes of read-only "weights"')
