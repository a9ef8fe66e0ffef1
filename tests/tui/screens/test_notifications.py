from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.index.review_items import ReviewItem
from core.index.texts import Texts
from core.learning.scoreboard import Scoreboard
from core.project.notifications import NotificationKind, find_notifications
from core.records.decisions import Decision, Verb
from core.records.loops import Loop, LoopStatus
from core.records.snapshot import Delta, Snapshot
from tui.screens.notices import toasts

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


def view(*loops: Loop, decisions: tuple[Decision, ...] = (), questions: tuple[str, ...] = ()) -> ProjectState:
    snapshot = Snapshot(loops=MappingProxyType({loop.id: loop for loop in loops}), decisions=decisions, complete=True)
    queue = tuple(ReviewItem(kind="inversion", subject=key, question="?", reason="", priority=0.5) for key in questions)
    board = Scoreboard.build(Snapshot(), NOW, Settings())
    return ProjectState(snapshot, board, Texts(snapshot), queue, Settings(), NOW, {})


def loop(key: str, status: LoopStatus, task: str = "") -> Loop:
    return Loop(id=key, task=task or f"task {key}", status=status)


def shown(before: ProjectState, after: ProjectState) -> list[tuple[str, str]]:
    delta = Delta(loops=frozenset(before.snapshot.loops) | frozenset(after.snapshot.loops), decisions=True)
    return [(text, severity) for text, severity in toasts(find_notifications(before, after, delta, {"mine"}), {"mine"})]


RUNNING, DONE, FAILED, CRASHED = LoopStatus.RUNNING, LoopStatus.COMPLETED, LoopStatus.FAILED, LoopStatus.CRASHED


def test_one_loop_is_named_and_more_are_counted() -> None:
    assert shown(view(loop("a", RUNNING)), view(loop("a", FAILED))) == [("failed: task a", "error")]
    both = view(loop("a", RUNNING), loop("b", RUNNING))
    assert shown(both, view(loop("a", FAILED), loop("b", FAILED))) == [("2 loops failed", "error")]


def test_failures_are_reported_and_successes_are_not() -> None:
    before = view(loop("a", RUNNING), loop("b", RUNNING), loop("c", RUNNING))
    after = view(loop("a", DONE), loop("b", CRASHED), loop("c", LoopStatus.LIMIT), loop("d", RUNNING))
    lines = shown(before, after)
    assert sorted(lines) == [("crashed: task b", "error"), ("hit its limit: task c", "error")]


def test_loops_that_had_already_ended_are_not_reported() -> None:
    assert shown(view(), view(loop("old", DONE))) == []
    assert shown(view(loop("a", FAILED)), view(loop("a", CRASHED))) == []
    assert shown(view(loop("a", RUNNING)), view()) == []


def test_a_loop_whose_folder_was_made_before_its_state_has_started() -> None:
    before, after = view(loop("a", LoopStatus.UNKNOWN)), view(Loop(id="a", task="Fix", status=RUNNING, iteration=1))
    (found,) = find_notifications(before, after, Delta(loops=frozenset("a")))
    assert found.what is NotificationKind.STARTED


def test_only_decisions_of_others_are_reported() -> None:
    ours = Decision(id="mine", at=NOW, by="ana", verb=Verb.PROMOTE, subject="pat-a")
    theirs = Decision(id="2", at=NOW, by="ana", verb=Verb.ACCEPT_INVERSION, subject="pat-b")
    assert shown(view(), view(decisions=(ours, theirs))) == [("ana: accept inversion pat-b", "information")]


def test_new_questions_are_reported() -> None:
    assert shown(view(questions=("a",)), view(questions=("a", "b"))) == [("1 new question in Review", "warning")]
    assert shown(view(questions=("a", "b")), view(questions=("a",))) == []


def test_an_escalation_is_reported_with_its_subject() -> None:
    item = ReviewItem(
        kind="escalation", subject="s", question="An agent is stuck: seen?", reason="\x1bwhy", priority=0.9
    )
    (line,) = shown(view(), replace(view(), queue=(item,)))
    assert line == ("An agent is stuck: seen? \N{SYMBOL FOR ESCAPE}why", "warning")


def test_names_from_files_are_shown_as_plain_text() -> None:
    lines = shown(view(loop("a", RUNNING)), view(loop("a", FAILED, task="\x1b[31mred\u202e")))
    assert "\x1b" not in lines[0][0]
    assert "\u202e" not in lines[0][0]
