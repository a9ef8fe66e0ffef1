"""Headless sessions with the same prompt are one loop."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Usage
from core.sources.adapters.sessions import BareLoops, join_sessions

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)


def run(number: int, **values: Any) -> Loop:
    started = NOW + timedelta(minutes=10 * number)
    known: dict[str, Any] = {
        "task": "Do the next story",
        "cwd": "/p",
        "tags": ("headless",),
        "status": LoopStatus.COMPLETED,
        "raw_status": "task_complete",
        "end_reason": "task_complete",
        "liveness": Liveness.ENDED,
        "started_at": started,
        "last_activity": started + timedelta(minutes=5),
        "session_ids": (str(number),),
        "usage": Usage(input=10),
    }
    return Loop(id=f"codex:{number}", runner="codex", owner="codex", **{**known, **values})


def test_runs_of_one_prompt_are_one_loop_that_waits_for_the_next_run() -> None:
    (loop,) = BareLoops().join([run(2), run(0), run(1)], NOW + timedelta(minutes=26))
    assert (loop.id, loop.aliases, loop.iteration) == ("codex:0", ("codex:1", "codex:2"), 3)
    assert (loop.session_ids, loop.usage.input) == (("0", "1", "2"), 30)
    assert (loop.status, loop.end_reason) == (LoopStatus.RUNNING, "")
    (loop,) = BareLoops().join([run(0), run(1), run(2)], NOW + timedelta(hours=1))
    assert loop.status is LoopStatus.UNKNOWN


def test_two_runs_other_folders_and_sessions_of_a_person_are_not_a_loop() -> None:
    others = [run(2, cwd="/other"), run(3, task="Another prompt"), run(4, tags=("interactive",)), run(5, parent="x")]
    loops = [run(0), run(1), *others]
    assert {loop.id for loop in BareLoops().join(loops, NOW)} == {loop.id for loop in loops}


def test_an_unchanged_loop_is_the_same_object() -> None:
    bare, later = BareLoops(), NOW + timedelta(hours=1)
    first, second = (next(bare.join([run(0), run(1), run(2)], later)) for _ in range(2))
    assert first is second


def test_each_session_is_an_iteration_with_all_its_failures() -> None:
    sessions = [
        LoopDetails(
            loop_id="codex:1",
            iterations=tuple(Iteration(number=n, failures=(Failure(message=f"{id} {n}"),)) for n in (1, 2)),
        )
        for id in ("first", "second")
    ]
    joined = join_sessions(run(0), sessions)
    assert [(one.number, [found.message for found in one.failures]) for one in joined.iterations] == [
        (1, ["first 1", "first 2"]),
        (2, ["second 1", "second 2"]),
    ]
