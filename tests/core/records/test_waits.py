from __future__ import annotations

import pytest

from core.records.loops import Loop, LoopStatus
from core.records.waits import needs_person, waits_for


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("waiting for permission", "permission"),
        ("asking_questions", "question"),
        ("blocked", "blocked"),
        ("api_limit", "rate limit"),
        ("needs you", "person"),
    ],
)
def test_the_words_of_the_runner_say_what_a_loop_waits_for(word: str, expected: str) -> None:
    loop = Loop(id="x:1", runner="x", status=LoopStatus.WAITING, raw_status=word)
    assert waits_for(loop) == expected
    assert needs_person(loop) is (expected != "rate limit")


def test_a_running_loop_waits_for_nothing() -> None:
    assert waits_for(Loop(id="x:1", runner="x", status=LoopStatus.RUNNING, raw_status="blocked")) == ""


def test_waiting_loops_in_aiwg_are_shown_as_before() -> None:
    assert not needs_person(Loop(id="a", status=LoopStatus.WAITING))
