"""What ends while twins are in use, scene by scene of ends.c."""
import functools
import signal

import pytest
from player import CANNOT, HERE, play as play_scene
from turns import software_gpu

play = functools.partial(play_scene, "ends", SWAP_PTX=str(HERE / "swap.ptx"))


def kernels(done):
    return [record["kernel"]["name"] for record in done.violations if record["kernel"]]


@pytest.fixture(params=["process", "context"])
def life(request):
    """What a fault ends: CUDA for the process, as real drivers have it, or only the context, as the software GPU can, too. Called with what a scene did: how many
    times it can do again what it does after its first fault; 0 where that ended all."""
    def rounds(done, possible):
        if done.returncode == CANNOT:
            if request.param == "context":
                pytest.skip(done.stdout.strip())
            return 0
        assert done.returncode == 5, done
        return possible

    rounds.settings = {"SOFTGPU_FAULT": request.param, "skips": False}
    return rounds


def test_a_reset_context_can_fault_again(life, tmp_path):
    done = play("reset_and_again", tmp_path, **life.settings)
    assert kernels(done) == ["add_each"] * (1 + life(done, 1)), done


@pytest.mark.parametrize("scene", ["reset_then_own_fault", "asked_before_own_fault"])
def test_launches_that_ended_are_not_blamed(scene, tmp_path):
    done = play(scene, tmp_path)
    assert done.returncode == 5, done
    assert not done.violations, done


@pytest.mark.parametrize("way", ["event", "event_asked", "copy", "copy_back"])
def test_launches_of_whose_end_the_program_learnt_are_not_blamed(way, tmp_path):
    if way == "copy" and not software_gpu():
        pytest.skip("a real driver's copy from pageable memory ends when its bytes are taken: nothing is learnt")
    done = play("learnt_before_own_fault", tmp_path, argument=way)
    assert done.returncode == 5, done
    assert not done.violations, done


@pytest.mark.parametrize("mode,status,violations", [("log", 5, 1), ("strict", 86, 1), ("deny", 5, 2)])
def test_a_view_belongs_to_no_context(mode, status, violations, tmp_path):
    done = play("made_in_another", tmp_path, mode)
    assert done.returncode == status, done
    assert len(done.violations) == violations, done


@pytest.mark.parametrize("rounds", [3, 70])
def test_each_context_can_fault(rounds, life, tmp_path):
    done = play("many_contexts", tmp_path, argument=rounds, options=":site_limit=1000", **life.settings)
    assert kernels(done) == ["add_each"] * (1 + life(done, rounds - 1)), done


@pytest.mark.parametrize("mode,status", [("log", 5), ("strict", 86)])
@pytest.mark.parametrize("scene", ["destroyed_at_once", "reset_at_once", "reset_later"])
def test_seen_before_the_context_is_gone(scene, mode, status, tmp_path):
    done = play(scene, tmp_path, mode)
    assert done.returncode == status, done
    assert kernels(done) == ["add_each"], done


@pytest.mark.parametrize("default", ["null", "legacy"])
def test_another_streams_end_ends_nothing(default, tmp_path):
    done = play("default_stream_first", tmp_path, argument=default)
    assert done.returncode == 5, done
    assert kernels(done) == ["late_store"], done


@pytest.mark.parametrize("through", ["stream", "event"])
def test_an_error_of_another_context(through, life, tmp_path):
    done = play("through_another", tmp_path, argument=through, **life.settings)
    assert kernels(done) == ["add_each"] * (1 + life(done, 1)), done


@pytest.mark.parametrize("known_after_us,fail", [(0, ""), (300000, ""), (20000, "cuEventCreate:1"), (20000, "cuEventRecord:1")])
def test_seen_at_exit_though_the_stream_is_gone(known_after_us, fail, tmp_path):
    """However long it takes until a fault is known; without an event behind it, if it is soon."""
    done = play("stream_gone", tmp_path, "strict", SOFTGPU_FAULT_US=str(known_after_us), SOFTGPU_FAIL=fail)
    assert done.returncode == 86, done
    assert kernels(done) == ["add_each"], done


@pytest.mark.parametrize("delay_us", [0, 1000])
@pytest.mark.parametrize("scene", ["many_streams_gone", "threads_of_streams"])
def test_streams_that_are_gone_are_not_blamed(scene, delay_us, tmp_path):
    done = play(scene, tmp_path, SOFTGPU_DELAY_US=str(delay_us))
    assert done.returncode == 5, done
    assert not done.violations, done


def test_one_fault_is_one_violation(life, tmp_path):
    done = play("innocent_elsewhere", tmp_path, **life.settings)
    (record,) = done.violations
    if life(done, 1):
        assert kernels(done) == ["add_each"], done
    else:
        assert [kernel["name"] for kernel in record["candidates"]] == ["add_each", "read_or_store"], done


@pytest.mark.parametrize("scene", ["across", "access_across"])
@pytest.mark.parametrize("mode", ["log", "deny", "strict"])
def test_several_reservations_at_once(scene, mode, tmp_path):
    done = play(scene, tmp_path, mode)
    assert done.returncode == 0, done


def test_access_that_cannot_follow(tmp_path):
    done = play("access_that_cannot_follow", tmp_path)
    assert done.returncode == 0, done
    assert done.stderr.count("has no read-only twin") == 1, done


@pytest.mark.parametrize("mode", ["log", "strict"])
def test_parameters_beyond_their_end(mode, tmp_path):
    """The answers are those that the driver gives alone."""
    alone = play("extra_too_large", tmp_path, argument="alone", LD_PRELOAD="")
    if alone.returncode == -signal.SIGSEGV:
        pytest.skip("the driver reads beyond the end by itself")
    done = play("extra_too_large", tmp_path, mode)
    assert alone.returncode == done.returncode == 0, (alone, done)
    assert alone.stdout and done.stdout == alone.stdout, (alone, done)
    assert not done.violations, done
