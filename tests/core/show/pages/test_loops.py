"""Overview of a loop of another runner."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from core.index.project_state import ProjectState
from core.records.loops import Loop, LoopDetails, LoopStatus, Progress, Usage
from core.records.snapshot import Snapshot
from core.show.pages.document import Fields, Moment
from core.show.pages.loops import elapsed, overview, usage_text
from tests.factories import NOW, SETTINGS, days_ago


def state_of(loop: Loop) -> ProjectState:
    return ProjectState.open(Snapshot(loops={loop.id: loop}), SETTINGS, NOW)


def rows(loop: Loop) -> dict[str, Any]:
    blocks = list(overview(state_of(loop), loop, None))
    return dict(row for block in blocks if isinstance(block, Fields) for row in block.rows)


def test_stories_and_the_last_change_of_a_runner_are_in_the_overview() -> None:
    progress = Progress(stories=5, stories_done=3, changed_at=days_ago(1))
    found = rows(Loop(id="ralph-tui:a", runner="ralph-tui", progress=progress))
    assert "3 of 5 done" in str(found["Stories"])
    (moment,) = found["Last change"]
    assert isinstance(moment, Moment) and moment.at == days_ago(1)


def test_a_waiting_session_has_its_question_and_the_command_that_opens_it() -> None:
    waiting = Loop(
        id="claude:a-1",
        runner="claude",
        owner="claude",
        status=LoopStatus.WAITING,
        raw_status="AskUserQuestion",
        question="Which clock?",
        session_ids=("a-1",),
        cwd="/shop/api",
    )
    found = rows(waiting)
    assert found["Waits for"] == ("question: Which clock?",)
    assert next(str(part) for part in found["Answer with"]) == "claude --resume a-1"
    assert "/shop/api" in str(found["Answer with"])
    codex = replace(waiting, runner="codex", owner="codex")
    assert "codex resume a-1" in str(rows(codex)["Answer with"])
    for other in (
        replace(waiting, session_ids=("-x; rm",)),
        replace(waiting, runner="open-ralph"),
        replace(waiting, status=LoopStatus.RUNNING),
    ):
        assert "Answer with" not in rows(other)


def test_an_unknown_end_has_no_running_time() -> None:
    loop = Loop(id="x:1", runner="x", raw_status="odd", started_at=days_ago(3), last_activity=days_ago(2))
    texts = str(list(overview(state_of(loop), loop, None)))
    assert "took" in texts and "running for" not in texts and "reported as odd" in texts
    assert elapsed(loop, NOW) == 24 * 3600


def test_tokens_are_input_output_and_cached() -> None:
    text = usage_text(Usage(input=11_000, cache_read=30_000, output=900))
    assert text == "41.9 k: 11.0 k input, 30.0 k cached input, 900 output"


def test_a_loop_of_the_project_has_neither() -> None:
    assert not {"Stories", "Last change"} & rows(Loop(id="a", updated_at=NOW)).keys()


def test_the_overview_leaves_out_values_without_content() -> None:
    ended = Loop(
        id="a",
        owner="unknown",
        status=LoopStatus.LIMIT,
        liveness_reason="its files report the status limit",
        ended_at=NOW,
        started_at=days_ago(1),
    )
    assert not {"Agent", "Last activity"} & rows(ended).keys()
    crashed = replace(ended, status=LoopStatus.CRASHED, liveness_reason="process 1 is gone", owner="claude")
    assert {"Agent", "Last activity"} <= rows(crashed).keys()


def test_values_of_files_have_labels_and_units_for_people() -> None:
    facts = (
        ("best iteration", "6"),
        ("selected iteration", "6"),
        ("iteration time", "2 h"),
        ("trajectory", "improving"),
    )
    loop = Loop(id="a", status=LoopStatus.RUNNING)
    blocks = list(overview(state_of(loop), loop, LoopDetails(loop_id="a", facts=facts)))
    found = dict(row for block in blocks if isinstance(block, Fields) for row in block.rows)
    assert found["Time at work"] == ("2 h",) and found["Quality"] == ("improving",)
    assert "Best iteration" in found and not any("elected iteration" in label for label in found)
