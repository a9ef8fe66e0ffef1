"""The question about lessons that are given often and seldom followed."""

from __future__ import annotations

from datetime import timedelta

from core.base.settings import Settings
from core.index.project_state import ProjectState
from core.index.review_items import SELDOM, ReviewItem
from core.questions.asking import QueueRecords
from core.questions.kinds import answers
from core.questions.queue import review_queue
from core.records.decisions import Verb
from core.records.events import VERDICT, Event
from core.records.snapshot import Snapshot
from core.show.cards import review_card
from tests.factories import CURATION_NOW, make_error_pattern, make_event, make_recorded_counts


def judged(*verdicts: bool | None) -> tuple[Event, ...]:
    """Return the events of sessions that were given the pattern, one for each verdict."""
    events = []
    for number, is_followed in enumerate(verdicts):
        at, work = CURATION_NOW - timedelta(days=1, minutes=number), f"task-{number:03}.1"
        events.append(make_event(2 * number, "injected", at, pattern_id="p", loop_id=work))
        shown = {"is_followed": is_followed, "action": 7, "text": "ran git push --force"}
        events.append(make_event(2 * number + 1, VERDICT, at, pattern_id="p", loop_id=work, **shown))
    return tuple(sorted(events, key=lambda event: event.at))


def state_of(*verdicts: bool | None) -> ProjectState:
    snapshot = Snapshot(
        patterns={"p": make_error_pattern("p", recorded_counts=make_recorded_counts(9, 1))}, events=judged(*verdicts)
    )
    return ProjectState.open(snapshot, Settings(), CURATION_NOW)


def ask(state: ProjectState) -> list[ReviewItem]:
    queue = review_queue(QueueRecords.of(state.snapshot, state.board, state.now, state.settings))
    return [item for item in queue if item.kind == SELDOM]


def test_a_lesson_that_is_given_often_and_seldom_followed_is_a_question() -> None:
    state = state_of(*[False] * 6, True, None)
    (item,) = ask(state)
    assert item.reason.startswith("given in 8 sessions: 1 followed it, 6 did not, 1 can't tell; about ")
    drop, keep = answers(item, state)[:2]
    assert (drop.command.verb, keep.command.verb) == (Verb.DEPRECATE, Verb.SNOOZE)
    assert "ran git push --force" in str(review_card(state, item).blocks), "the evidence is on the card"


def test_few_or_mixed_verdicts_ask_nothing() -> None:
    for verdicts in ([False] * 4, [False] * 4 + [True] * 4, [None] * 9):
        assert not ask(state_of(*verdicts)), verdicts
