"""Runtime and library calls above the driver's: the record says the outermost name, and cuFFT's contract is used."""
import pytest
from rig import VIOLATED

LIBRARIES = """
import ctypes
cudart, cufft, extension = (ctypes.CDLL(name) for name in ("libcudart.so.13", "libcufft.so.12", "libextension.so"))
u64 = ctypes.c_uint64
guard = protect((p, SIZE), label="weights")
def plan(how, *arguments):
    made = ctypes.c_int()
    assert how(ctypes.byref(made), *arguments) == 0
    return made.value
C2C, C2R = 0x29, 0x2c
"""
RUNTIME_COPY = LIBRARIES + "status = cudart.cudaMemcpyAsync(u64(p), u64(q), u64(64), 3, u64(0))  # HERE\nsynchronize()\nprint(status, digest(p))\n"


def test_a_runtime_copy_in_log(program):
    made = program(RUNTIME_COPY)
    result = made.run("log")
    assert result.first == 'cuconst: violation: cudaMemcpyAsync (cuMemcpyDtoDAsync_v2) wrote 64 bytes of read-only "weights"'
    record = result.only
    assert (record["outer_api"], record["outer_note"], record["api"]) == ("cudaMemcpyAsync", None, "cuMemcpyDtoDAsync_v2")
    assert record["python"][0] == made.place("<module>")
    assert (result.status, result.stdout) == (VIOLATED, made.alone()) == (VIOLATED, "0 {1: 4032, 3: 64}\n")


def test_a_runtime_copy_in_deny(program):
    result = program(RUNTIME_COPY).run("deny")
    assert result.first == 'cuconst: denied: cudaMemcpyAsync (cuMemcpyDtoDAsync_v2) would write 64 bytes of read-only "weights"'
    assert (result.status, result.stdout) == (VIOLATED, "800 {1: 4096}\n")


def test_what_a_refusal_in_the_middle_of_a_call_leaves_half_done(program):
    """Rows 0 and 1 are written before row 2, which is read-only, is refused; row 3 is not tried."""
    made = program(LIBRARIES.replace("guard = protect((p, SIZE)", "guard = protect((p + 2048, 1024)") +
                   "status = cudart.cudaMemset2D(u64(p), u64(1024), 7, u64(1024), u64(4))  # HERE\nsynchronize()\nprint(status, digest(p))\n")
    result = made.run("deny")
    assert result.first == 'cuconst: denied: cudaMemset2D (kernel fill, cuLaunchKernel, argument 0) would write read-only "weights"', result.stderr
    assert result.only["earlier_launches"] == 2 and "action: denied (mode deny), after 2 launches of that call" in result.stderr
    assert result.stdout == "800 {0: 1536, 1: 2048, 7: 512}\n"
    assert (result.status, result.only["outer_api"]) == (VIOLATED, "cudaMemset2D")


RUNTIME_LAUNCH = LIBRARIES + "status = cudart.cudaLaunchKernel(u64(p), 7, 16)  # HERE\nsynchronize()\nprint(status, digest(p))\n"
KERNEL = 'kernel fill (cuLaunchKernel, argument 0)'


@pytest.mark.parametrize("mode,line,action", [("log", f"violation: {KERNEL} wrote 64 bytes of", "logged"), ("deny", f"denied: {KERNEL} would write", "denied"),
                                              ("strict", f"stopped: {KERNEL} wrote 64 bytes of", "stopped")])
def test_a_runtime_launch_is_named_by_its_stack(program, mode, line, action):
    """No hook stands for it: each launch would pay for that."""
    made = program(RUNTIME_LAUNCH)
    result = made.run(mode)
    assert result.first == f'cuconst: {line} read-only "weights"', result.stderr
    record = result.only
    assert (record["api"], record["outer_api"], record["outer_note"], record["action"]) == ("cuLaunchKernel", "cudaLaunchKernel", None, action)
    assert record["python"][0] == made.place("<module>") and record["native"][-1]["symbol"] != "cudaLaunchKernel"


def test_a_runtime_launch_can_be_suppressed_by_name(program, tmp_path):
    listed = tmp_path / "suppressions"
    listed.write_text("api:cudaLaunchKernel\n")
    made = program(RUNTIME_LAUNCH)
    for mode in ("log", "deny", "strict"):
        result = made.run(mode, "--suppressions", str(listed))
        assert (result.status, result.stdout) == (0, made.alone()), result.stderr


@pytest.mark.parametrize("option,name", [("names=1", "cudaLaunchKernel"), ("names=0", None)])
def test_names_of_launches_can_be_left_out(program, option, name):
    assert program(RUNTIME_LAUNCH).run("log", "--option", option).only["outer_api"] == name


def test_without_names_the_driver_call_is_named(program):
    result = program(RUNTIME_COPY).run("log", "--option", "names=0")
    assert result.first == 'cuconst: violation: cuMemcpyDtoDAsync_v2 wrote 64 bytes of read-only "weights"'
    assert result.only["outer_api"] is None


@pytest.mark.parametrize("call,api", [("extension_copy(u64(p), u64(q), u64(64))", "cuMemcpyDtoDAsync_v2"), ("extension_set(u64(p), 5, u64(64))", "cuMemsetD8_v2")])
def test_a_static_runtime_is_named_by_its_driver_call(program, call, api):
    result = program(LIBRARIES + f"extension.{call}  # HERE\n").run("log")
    assert result.first == f'cuconst: violation: {api} wrote 64 bytes of read-only "weights"'
    assert (result.only["outer_api"], result.only["library"]) == (None, "libextension.so")


# What the program executes, by which function; the arguments that may be written, and the one that was refused; bytes written in log.
EXECUTIONS = {
    "in place": ("cufftExecC2C(plan(cufft.cufftPlan1d, 16, C2C, 1), u64(p), u64(p), -1)", "cufftExecC2C", "idata=odata", "idata=odata", 128),
    "into it": ("cufftExecC2C(plan(cufft.cufftPlan1d, 16, C2C, 1), u64(q), u64(p), -1)", "cufftExecC2C", "odata", "odata", 128),
    "two dimensions, complex to real": ("cufftExecC2R(plan(cufft.cufftPlan2d, 4, 4, C2R), u64(p), u64(q))", "cufftExecC2R", "idata, odata", "idata", 64),
}


@pytest.mark.parametrize("call,api,note,refused,size", EXECUTIONS.values(), ids=EXECUTIONS)
def test_cufft(program, call, api, note, refused, size):
    made = program(LIBRARIES + f"status = cufft.{call}  # HERE\nsynchronize()\nprint(status, digest(p))\n")
    log = made.run("log")
    assert log.first == f'cuconst: violation: {api}({note}) (kernel fill, cuLaunchKernel, argument 0) wrote {size} bytes of read-only "weights"'
    record = log.only
    assert (record["outer_api"], record["outer_note"], record["api"], record["kernel"]["name"]) == (api, note, "cuLaunchKernel", "fill")
    assert record["python"][0] == made.place("<module>") and log.stdout == made.alone()
    deny = made.run("deny")
    assert deny.first == f'cuconst: denied: {api}({refused}) would write read-only "weights"', deny.stderr
    assert (deny.status, deny.stdout) == (VIOLATED, "4 {1: 4096}\n"), "CUFFT_INVALID_VALUE, and not a byte was lost"
    assert (deny.only["action"], deny.only["outer_note"]) == ("denied", refused)


@pytest.mark.parametrize("call", ["cufftExecC2R(plan(cufft.cufftPlan1d, 16, C2R, 1), u64(p), u64(q))", "cufftExecC2C(plan(cufft.cufftPlan1d, 16, C2C, 1), u64(p), u64(q), 1)"])
def test_cufft_that_only_reads_it(program, call):
    for mode in ("log", "deny", "strict"):
        result = program(LIBRARIES + f"assert cufft.{call} == 0\nsynchronize()\n").run(mode)
        assert (result.status, result.first) == (0, ""), result.stderr
