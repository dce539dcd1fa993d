"""Launches with twins from many Python lines: each record names the line that it was, scene by scene of lines.py."""
import sys

import pytest
from player import HERE, run


def played(scene, tmp_path):
    """The record, where the protected words begin, and what it says: words by number, and the line that each was launched from."""
    done = run([sys.executable, str(HERE / "lines.py"), scene], tmp_path, "strict", options=":twins=all:cache=0")
    assert done.returncode == 86, done
    (record,) = done.violations
    assert (record["action"], record["evidence"]) == ("stopped", "written") and record["fault"], record
    start = int(done.stdout)
    told = [(kernel["value"], (kernel["site"] or {}).get("line")) for kernel in record["candidates"]]
    if not told:
        told = [(record["kernel"]["value"], record["python"][0]["line"])]
    return record, [((int(value, 16) - start) // 4, line) for value, line in told]


def test_launches_from_ten_thousand_lines(tmp_path):
    record, told = played("many", tmp_path)
    assert not record["kernel"] and not record["cut"]
    assert told == [(line, line) for line in [2500, *range(50, 0, -1)]]


def test_a_place_that_was_met_long_ago(tmp_path):
    _, told = played("old", tmp_path)
    assert told == [(line, line) for line in [2500, *range(2060, 2000, -1), 1]]


def test_two_places_in_turns(tmp_path):
    _, told = played("turns", tmp_path)
    assert told == [(1, 2), (1, 1), (1, 2), (1, 1)]


def test_two_words_of_a_launch(tmp_path):
    record, told = played("slots", tmp_path)
    assert record["kernel"]["name"] == "two" and record["kernel"]["argument"] is None
    assert sorted(told) == [(20, 20), (21, 20)] and record["python"][0]["line"] == 20
    assert sorted(kernel["argument"] for kernel in record["candidates"]) == [0, 1]


@pytest.mark.parametrize("times", range(3))
def test_threads_that_launch_from_lines_of_their_own(times, tmp_path):
    _, told = played("threads", tmp_path)
    assert told and all(word == line for word, line in told), told
