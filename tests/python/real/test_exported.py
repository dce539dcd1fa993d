"""--protect=exports with the real library: arrays over real memory, from look-alikes of jaxlib and cupy, in programs that say nothing of cuconst."""
import pytest
from lookalikes import modules  # noqa: F401
from rig import VIOLATED

LAUNDERED = """
import cupy, jax
x = jax.ArrayImpl(p, (1024,))
address = cupy.asarray(x)[1]   # the read-only bit is lost here
def step():
    return driver.cuLaunchKernel(*kernel("fill", address, 7, 16))  # HERE
print(step()[0].name)
synchronize()
print(digest(p))
"""
EXPORTS = "--protect=exports"


def test_a_laundered_jax_array(program, modules):  # noqa: F811
    made = program(LAUNDERED)
    result = made.run("log", EXPORTS, path=[modules])
    assert result.first == 'cuconst: violation: kernel fill (cuLaunchKernel, argument 0) wrote 64 bytes of read-only "jax float32[1024]"', result.stderr
    assert result.status == VIOLATED and result.only["python"][0] == made.place("step")
    assert result.stdout == "CUDA_SUCCESS\n{0: 48, 1: 4032, 7: 16}\n"


def test_in_deny_the_kernel_is_not_launched(program, modules):  # noqa: F811
    made = program(LAUNDERED)
    result = made.run("deny", EXPORTS, path=[modules])
    assert result.first == 'cuconst: denied: kernel fill (cuLaunchKernel, argument 0) would write read-only "jax float32[1024]"', result.stderr
    assert result.status == VIOLATED and result.only["python"][0] == made.place("step")
    assert result.stdout == "CUDA_ERROR_NOT_PERMITTED\n{1: 4096}\n"


def test_in_strict_it_ends(program, modules):  # noqa: F811
    result = program(LAUNDERED).run("strict", EXPORTS, path=[modules])
    assert result.first == 'cuconst: stopped: kernel fill (cuLaunchKernel, argument 0) wrote 64 bytes of read-only "jax float32[1024]"'
    assert result.status == VIOLATED and "{" not in result.stdout


def test_a_dlpack_export_is_kept_from_a_copy(program, modules):  # noqa: F811
    made = program("import jax\nx = jax.ArrayImpl(p, (1024,), interface=False)\ncapsule = x.__dlpack__()\n"
                   "print(driver.cuMemcpyDtoD(p, q, 64)[0].name, digest(p))  # HERE\n")
    result = made.run("deny", EXPORTS, path=[modules])
    assert (result.status, result.stdout) == (VIOLATED, "CUDA_ERROR_NOT_PERMITTED {1: 4096}\n"), result.stderr
    assert result.first == 'cuconst: denied: cuMemcpyDtoD_v2 would write 64 bytes of read-only "jax float32[1024]"'
    assert result.only["python"][0] == made.place("<module>")


@pytest.mark.parametrize("readonly,status", [(True, VIOLATED), (False, 0)])
def test_a_read_only_interface_at_its_consumer(program, modules, readonly, status):  # noqa: F811
    made = program(f"import cupy\nx = Memory(readonly={readonly})\naddress = cupy.asarray(x)[1]\ncheck(driver.cuMemsetD8(address, 5, 16))  # HERE\n")
    result = made.run("log", EXPORTS, path=[modules])
    assert result.status == status, result.stderr
    assert [record["range"]["label"] for record in result.records] == (["Memory int32[1024]"] if readonly else [])


def test_after_the_array_is_gone_or_donated_its_memory_is_free(program, modules):  # noqa: F811
    made = program("import gc, jax\nx, y = jax.ArrayImpl(p, (16,)), jax.ArrayImpl(q, (16,))\nx.__cuda_array_interface__\ny.__cuda_array_interface__\n"
                   "y.deleted = True\ndel x\ngc.collect()\nz = jax.ArrayImpl(filled(2), (16,))\nz.__cuda_array_interface__\n"
                   "check(driver.cuMemsetD8(p, 5, 16))\ncheck(driver.cuMemsetD8(q, 5, 16))\nprint('both')\n")
    result = made.run("strict", EXPORTS, path=[modules])
    assert (result.status, result.stdout) == (0, "both\n"), result.stderr


def test_without_the_option_nothing_is_protected(program, modules):  # noqa: F811
    result = program(LAUNDERED).run("strict", path=[modules])
    assert (result.status, result.first, result.records) == (0, "", [])
