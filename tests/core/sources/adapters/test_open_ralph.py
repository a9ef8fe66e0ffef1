"""The adapter of open-ralph-wiggum, whose state file vanishes at the end."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest

from core.records.loops import CONTRADICTED, Liveness, LoopStatus, StateSource
from core.sources.adapters.join import check_claim
from core.sources.adapters.open_ralph import OpenRalphAdapter
from tests.core.sources.adapters.fixtures import NOW, Case, open_case

INFERRED, REPORTED = StateSource.INFERRED, StateSource.REPORTED
ID = "open-ralph:20261120T113000"


def open_(case: str, tmp_path: Path) -> Case:
    return open_case(OpenRalphAdapter(), f"open-ralph/{case}", tmp_path / "case")


def ralph(case: Case, name: str) -> Path:
    return case.project / ".ralph" / name


def change(case: Case, name: str, **values: object) -> None:
    """Change fields of a ANY_JSON file; for the history, of its last iteration."""
    document = json.loads(ralph(case, name).read_text())
    (document["iterations"][-1] if "iterations" in document else document).update(values)
    ralph(case, name).write_text(json.dumps(document))


def end(case: Case, *, with_history: bool = False) -> None:
    """Look once, then remove the state as the runner does, and after a promise the history too."""
    case.loops()
    ralph(case, "ralph-loop.state.json").unlink()
    if with_history:
        ralph(case, "ralph-history.json").unlink(missing_ok=True)


@pytest.mark.parametrize(("minutes", "liveness"), [(29, Liveness.FRESH), (31, Liveness.STALE)])
def test_a_loop_without_a_change_for_two_iterations_is_stale(tmp_path: Path, minutes: int, liveness: Liveness) -> None:
    case = open_("running", tmp_path)
    case.now = NOW + timedelta(minutes=minutes)
    loop = case.loop()
    assert (loop.status, loop.liveness) == (LoopStatus.RUNNING, liveness)
    assert (loop.badges == ("stale",)) is (liveness is Liveness.STALE)


def test_a_question_makes_it_wait(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    ralph(case, "ralph-questions.json").write_text('[{"question": "Round half up?", "timestamp": "x"}]')
    loop = case.loop()
    assert (loop.status, loop.state_source, loop.end_reason) == (LoopStatus.WAITING, REPORTED, "question")
    assert loop.question == "Round half up?"
    assert ("Question", "Round half up?") in case.details(loop).notes


@pytest.mark.parametrize(
    ("case", "changed", "with_history", "expected"),
    [
        ("running", {"completionDetected": True}, False, (LoopStatus.COMPLETED, "completion promise")),
        ("max", {}, False, (LoopStatus.LIMIT, "2 of 2 iterations")),
        ("running", {}, False, (LoopStatus.UNKNOWN, "stopped after 1 iterations")),
        ("running", {}, True, (LoopStatus.UNKNOWN, "cleared after a promise or an abort")),
        ("cleared", None, True, (LoopStatus.UNKNOWN, "cleared after a promise or an abort")),
    ],
)
def test_the_end_is_inferred_after_the_state_file_vanished(
    tmp_path: Path, case: str, changed: dict[str, object] | None, with_history: bool, expected: tuple[LoopStatus, str]
) -> None:
    opened = open_(case, tmp_path)
    if changed is not None:
        change(opened, "ralph-history.json", **changed)
    end(opened, with_history=with_history)
    loop = opened.loop()
    assert (loop.status, loop.end_reason, loop.state_source) == (*expected, INFERRED)
    assert loop.task == "Make every test of the cart pass", "it is remembered"
    assert (loop.ended_at is not None, loop.liveness) == (True, Liveness.ENDED)


def test_a_loop_whose_prompt_was_never_seen_has_its_first_open_task(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    ralph(case, "ralph-loop.state.json").unlink()
    assert case.loop().task == "Show cents"


def test_a_promise_with_open_tasks_is_contradicted(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    change(case, "ralph-history.json", completionDetected=True)
    end(case)
    assert CONTRADICTED in check_claim(case.loop()).badges


def test_details_have_the_runner_s_own_signs_of_trouble(tmp_path: Path) -> None:
    case = open_("max", tmp_path)
    document = json.loads(ralph(case, "ralph-history.json").read_text())
    document["struggleIndicators"] = {"repeatedErrors": {"2 failed": 2, "once": 1}, "noProgressIterations": 3}
    ralph(case, "ralph-history.json").write_text(json.dumps(document))
    assert case.details().facts == (("iterations without progress", "3"), ("repeated error", "2 failed"))


def test_the_next_loop_is_another_one(tmp_path: Path) -> None:
    case = open_("max", tmp_path)
    case.loops()
    change(case, "ralph-loop.state.json", startedAt="2026-11-20T11:58:00.000Z", iteration=1)
    old, new = case.loops().values()
    assert (old.id, old.iterations, old.status) == (ID, (), LoopStatus.UNKNOWN)
    assert (new.id, new.iterations, new.status) == ("open-ralph:20261120T115800", (), LoopStatus.RUNNING)


def test_a_history_alone_is_a_loop_without_a_known_end(tmp_path: Path) -> None:
    case = open_("max", tmp_path)
    ralph(case, "ralph-loop.state.json").unlink()
    loop = case.loop()
    assert (loop.id, loop.status, loop.iteration) == (ID, LoopStatus.UNKNOWN, 2)
    assert loop.end_reason == "stopped after 2 iterations"


def test_a_loop_that_is_not_active_does_not_run(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    change(case, "ralph-loop.state.json", active=False)
    assert (case.loop().status, case.loop().end_reason) == (LoopStatus.UNKNOWN, "not active")


def test_damaged_memories_are_ignored(tmp_path: Path) -> None:
    for value in (7, [1], {"x": 7}, {"x": {"state": 1, "seen_at": "no"}}, {"x": {"state": {}, "seen_at": str(NOW)}}):
        case = open_("running", tmp_path / str(hash(str(value))))
        case.files.remember("vanishing", value)
        assert list(case.loops()) == [ID]


def test_a_context_is_delivered_by_the_runner_s_own_command(tmp_path: Path) -> None:
    case = open_("max", tmp_path)
    delivery = case.adapter.deliver(case.loop(), "Use $(the) clock", case.files)
    assert delivery is not None
    assert (delivery.command, delivery.diff) == (("ralph", "--add-context", "Use $(the) clock"), "")
    assert case.adapter.deliver(case.loop(), " ", case.files) is None
    end(case)
    assert case.adapter.deliver(case.loop(), "Use the clock", case.files) is None, "it has ended"


def test_the_fingerprint_is_its_state_or_history(tmp_path: Path) -> None:
    case = open_("running", tmp_path)
    assert case.adapter.fingerprint(case.folders) == (".ralph/ralph-loop.state.json",)
    ralph(case, "ralph-loop.state.json").unlink()
    assert case.adapter.fingerprint(case.folders) == (".ralph/ralph-history.json",)
    ralph(case, "ralph-history.json").write_text("{}")
    assert case.adapter.fingerprint(case.folders) == ()
