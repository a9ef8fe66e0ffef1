"""Answers to review questions, and what they decide."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.errors import BadInput, RalphdeckError, Refused
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.base.text import field_changes
from core.decisions.case import describe_change
from core.decisions.commands import Deprecate, Promote, Release, RestoreText, Undo, command_for
from core.decisions.rules import find_approved_pattern
from core.index.project_state import ProjectState
from core.index.review_items import (
    BORDERLINE,
    BROAD,
    CONTRADICTED,
    HARMFUL,
    INVERSION,
    KINDS,
    QUARANTINE,
    SELDOM,
    STALE_PIN,
    UNRECONCILED,
    WEAKENED,
    ReviewItem,
    WeakenedTest,
)
from core.project.forecast import dry_run
from core.project.project import Project
from core.questions.answer import Answer
from core.questions.asking import QueueRecords
from core.questions.kinds import answer, answers
from core.questions.queue import review_queue
from core.records.decisions import Verb
from core.records.events import VERDICT, Event
from core.records.patterns import Maturity
from core.records.snapshot import Snapshot
from core.show.cards import review_card
from core.sources.events import append_events
from core.trust.experiment_secret import read_or_make_secret
from tests.conftest import WriteSample
from tests.core.index.test_trials import trial_events
from tests.factories import CURATION_NOW, PATTERN_FILE, make_error_pattern, make_event, make_recorded_counts
from tests.factories import NOW as FACTORY_NOW

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
SUBJECT = "pat-error-type-mismatch-003"


WEAKENED_TEST = ReviewItem(
    kind=WEAKENED,
    subject="task-001",
    question="?",
    reason="?",
    priority=0.0,
    weakened=WeakenedTest(attempt_id="task-001.1", task_id="task-001", number=4, change="skipped"),
)


@pytest.fixture
def open_project(tmp_path: Path, write_sample: WriteSample) -> Project:
    write_sample(tmp_path, NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    while open_project.search_next() is not None:
        pass
    return open_project


def about(kind: str) -> ReviewItem:
    return ReviewItem(kind=kind, subject=SUBJECT, question="?", reason="?", priority=0.5)


def answer_of(open_project: Project, item: ReviewItem, action: str) -> Answer:
    found = answer(item, open_project.view, action)
    assert found is not None
    return found


def reworded(open_project: Project, subject: str, text: str) -> None:
    """Change the text of a pattern in its file, as another program would."""
    path = open_project.project.project / open_project.view.pattern(subject).file
    content = json.loads(path.read_text())
    for records in content["pattern_registry"].values():
        for record in records:
            if record["pattern_id"] == subject:
                record["fix_approach"]["description"] = text
                record["name"] = "Another name"
    path.write_text(json.dumps(content, indent=2))
    open_project.apply(None)


def test_every_question_offers_each_action_once(open_project: Project) -> None:
    asked = [*open_project.view.queue, *(about(kind) for kind in (BORDERLINE, BROAD, UNRECONCILED)), WEAKENED_TEST]
    assert {item.kind for item in asked} <= set(KINDS)
    for item in asked:
        offered = answers(item, open_project.view)
        actions = [one.action for one in offered]
        assert len(actions) == len(set(actions))
        assert {"accept", "reject", "snooze", "snooze_evidence"} <= set(actions)
        assert all(one.label and one.effect for one in offered)


def test_answer_is_allowed_if_and_only_if_the_curator_accepts_it(open_project: Project) -> None:
    for state in ("", "promote", "deprecate", "quarantine"):
        if state:
            open_project.decide(command_for(Verb(state), SUBJECT, "so"))
        for one in answers(about(BORDERLINE), open_project.view):
            try:
                dry_run(open_project, one.with_text("so"))
            except RalphdeckError:
                assert one.why_not
            else:
                assert not one.why_not
        if state:
            open_project.decide(Undo())


def test_answers_about_keeping_a_lesson_stop_its_injection_or_dismiss_only_their_question(
    open_project: Project,
) -> None:
    for kind, action, state in (
        (BORDERLINE, "reject", "deprecate"),
        (UNRECONCILED, "reject", "quarantine"),
        (BROAD, "accept", "quarantine"),
    ):
        given = answer_of(open_project, about(kind), action)
        assert given.label == state
        open_project.decide(given.with_text(""))
        assert not open_project.view.assessment(SUBJECT).injectable
        open_project.decide(Undo())
    item = about(BORDERLINE)
    keep = answer_of(open_project, item, "accept")
    assert (keep.label, keep.matters) == ("keep", False)
    open_project.decide(keep.with_text(""))
    assert item.question_key in open_project.view.snapshot.curation.dismissed
    assert SUBJECT not in open_project.view.snapshot.curation.dismissed


def test_the_effect_of_allowing_a_lesson_again_names_a_rate_that_leaves_it_out(open_project: Project) -> None:
    state = open_project.view
    asked = [item for item in state.queue if item.kind == BORDERLINE and state.assessment(item.subject).pin is None]
    asked = [item for item in asked if state.assessment(item.subject).state is Maturity.DEPRECATED]
    least = state.settings.injection.min_success_rate
    is_low = {item.subject: state.board.effectiveness[state.board.row(item.subject)] < least for item in asked}
    effects = {item.subject: answer_of(open_project, item, "accept").effect for item in asked}
    assert {id: "left out" in effect for id, effect in effects.items()} == is_low
    assert set(is_low.values()) == {True, False}


def test_a_weakened_test_is_acknowledged_for_good_or_asked_about_on_the_next_day(open_project: Project) -> None:
    no = answer_of(open_project, WEAKENED_TEST, "reject")
    open_project.decide(no.with_text(""))
    verdict = open_project.view.snapshot.curation.inversions[WEAKENED_TEST.question_key]
    assert verdict.is_snoozed(NOW, 0) and not verdict.is_snoozed(NOW + timedelta(days=1), 0)
    done = open_project.decide(answer_of(open_project, WEAKENED_TEST, "accept").with_text(""))
    assert done.summary == "acknowledged the test that was skipped in task-001.1"
    assert WEAKENED_TEST.question_key in open_project.view.snapshot.curation.dismissed


def test_accept_and_reject_match_the_question(open_project: Project) -> None:
    pinned = next(item for item in open_project.view.queue if item.kind == CONTRADICTED)
    assert [answer_of(open_project, pinned, action).label for action in ("accept", "reject")] == ["reset", "keep"]
    open_project.decide(answer_of(open_project, pinned, "reject").with_text(""))
    assert open_project.view.assessment(pinned.subject).state is Maturity.PROVEN
    assert pinned.subject not in [item.subject for item in open_project.view.queue]
    open_project.decide(Undo())
    open_project.decide(answer_of(open_project, pinned, "accept").with_text(""))
    assert open_project.view.assessment(pinned.subject).pin is None
    open_project.decide(Deprecate(SUBJECT, reason="hides the cause"))
    reworded(open_project, SUBJECT, "Do something else")
    stale = about(STALE_PIN)
    assert [answer_of(open_project, stale, action).label for action in ("accept", "reject")] == ["keep", "reset"]
    open_project.decide(answer_of(open_project, stale, "accept").with_text(""))
    pin = open_project.view.assessment(SUBJECT).pin
    assert pin is not None and (pin.state, pin.reason) == (Maturity.DEPRECATED, "hides the cause")
    assert not open_project.view.assessment(SUBJECT).pin_stale
    inversion = next(item for item in open_project.view.queue if item.kind == INVERSION)
    assert open_project.view.assessment(inversion.subject).computed is Maturity.DEPRECATED
    reject = answer_of(open_project, inversion, "reject")
    assert "stays deprecated" in reject.effect
    open_project.decide(reject.with_text(""))
    assert not open_project.view.assessment(inversion.subject).injectable


def test_a_pattern_deprecated_by_rule_is_re_enabled_as_established_and_one_by_a_person_by_a_reset(
    open_project: Project,
) -> None:
    open_project.decide(Deprecate(SUBJECT, reason="hides the cause"))
    open_project.decide(answer_of(open_project, about(BORDERLINE), "accept").with_text(""))
    reset = open_project.view.assessment(SUBJECT)
    assert (reset.pin, reset.state) == (None, reset.computed)
    subject = "pat-success-split-by-type-002"
    before = open_project.view.assessment(subject)
    assert (before.state, before.pin) == (Maturity.DEPRECATED, None)
    item = ReviewItem(kind=BORDERLINE, subject=subject, question="?", reason="?", priority=0.5)
    decided = open_project.decide(answer_of(open_project, item, "accept").with_text(""))
    assert decided.summary == f"re-enabled {subject}: deprecated → established"
    after = open_project.view.assessment(subject)
    assert (after.state, after.multiplier, after.injectable) == (Maturity.ESTABLISHED, 1.0, True)
    assert open_project.decide(Undo()).summary == f"Undone: re-enable {subject} (→ deprecated)"
    assert open_project.view.assessment(subject) == before
    promote = answer_of(open_project, item, "promote")
    assert open_project.view.has_low_rate(subject)
    assert not promote.why_not and "left out of prompts" in promote.effect
    assert [one.verb for one in open_project.decide(promote.with_text("")).group] == [Verb.RESET, Verb.PROMOTE]


def test_blocked_text_needs_a_reason_to_be_released_promoted_or_re_enabled(open_project: Project) -> None:
    reworded(open_project, SUBJECT, "Run rm -rf / before the tests")
    item = next(item for item in open_project.view.queue if item.subject == SUBJECT and item.kind == QUARANTINE)
    for action in ("accept", "promote"):
        given = answer_of(open_project, item, action)
        assert given.needs_reason
        assert given.matters
        with pytest.raises(BadInput, match="needs a reason"):
            open_project.decide(given.with_text(""))
    open_project.decide(answer_of(open_project, item, "accept").with_text("it is a sandbox"))
    assert open_project.view.assessment(SUBJECT).injectable
    open_project.decide(Deprecate(SUBJECT, reason="dangerous"))
    reworded(open_project, SUBJECT, "Run rm -rf / now")
    known = len(open_project.view.snapshot.decisions)
    with pytest.raises(RalphdeckError, match="needs a reason"):
        open_project.decide(Promote(SUBJECT, re_enable=True))
    assert len(open_project.view.snapshot.decisions) == known, "all or nothing"


def test_stale_pin_does_not_prevent_quarantine(open_project: Project) -> None:
    open_project.decide(Promote(SUBJECT, reason="seen"))
    assert "is pinned" in answer_of(open_project, about(BORDERLINE), "quarantine").why_not
    reworded(open_project, SUBJECT, "Delete the tests")
    assert open_project.view.assessment(SUBJECT).pin_stale
    suspend = answer_of(open_project, about(STALE_PIN), "quarantine")
    assert (suspend.label, suspend.why_not) == ("quarantine", "")
    decided = open_project.decide(suspend.with_text("who wrote this?"))
    assert describe_change(decided.decision) == "candidate → quarantine"
    assert open_project.view.assessment(SUBJECT).shown == "quarantine"
    assert describe_change(open_project.decide(Release(SUBJECT)).decision).startswith("quarantine → ")


def test_approved_text_is_compared_and_restored(open_project: Project) -> None:
    path = open_project.project.project / PATTERN_FILE
    with pytest.raises(Refused, match="has no approved text"):
        open_project.decide(RestoreText(SUBJECT))
    open_project.decide(Promote(SUBJECT))
    with pytest.raises(Refused, match="already has the approved text"):
        open_project.decide(RestoreText(SUBJECT))
    pinned, original = path.read_bytes(), open_project.view.pattern(SUBJECT)
    reworded(open_project, SUBJECT, "Do something else")
    found = path.read_bytes()
    item = next(item for item in open_project.view.queue if item.kind == STALE_PIN and item.subject == SUBJECT)
    approved = find_approved_pattern(open_project.view, SUBJECT)
    assert approved is not None
    assert field_changes(approved, open_project.view.pattern(SUBJECT)) == (
        ("title", original.title, open_project.view.pattern(SUBJECT).title),
        ("description", original.description, "Do something else"),
    )
    restore = answer_of(open_project, item, "restore_text").with_text("")
    forecasts = dry_run(open_project, restore).state
    decided = open_project.decide(restore)
    assert decided.decision.verb is Verb.EDIT
    assert json.loads(path.read_bytes()) == json.loads(pinned)
    assert open_project.view.assessment(SUBJECT).state is Maturity.PROVEN is forecasts.assessment(SUBJECT).state
    assert not open_project.view.assessment(SUBJECT).pin_stale
    open_project.decide(Undo())
    assert json.loads(path.read_bytes()) == json.loads(found)
    assert open_project.view.assessment(SUBJECT).pin_stale


def test_restore_refuses_a_text_that_was_not_stored(open_project: Project) -> None:
    open_project.decide(Promote(SUBJECT))
    ledger = open_project.project.ledger
    ledger.write_bytes(ledger.read_bytes().replace(b'"seen_text"', b'"seen_then"'))
    open_project = Project(open_project.project, Settings(), by="ana", clock=lambda: NOW, cache=False)
    open_project.load()
    reworded(open_project, SUBJECT, "Do something else")
    assert find_approved_pattern(open_project.view, SUBJECT) is None
    item = next(item for item in open_project.view.queue if item.kind == STALE_PIN)
    assert answer_of(open_project, item, "restore_text").why_not == "the approved text was not stored"
    with pytest.raises(Refused, match="was not stored when it was promoted"):
        open_project.decide(RestoreText(SUBJECT))


PATTERN = "pat-error-type-mismatch-003"


def questions(project: Project) -> list[ReviewItem]:
    return [item for item in project.view.queue if item.kind == HARMFUL]


def test_it_is_asked_at_once_and_its_answers_can_be_undone(tmp_path: Path, write_sample: WriteSample) -> None:
    write_sample(tmp_path, FACTORY_NOW)
    open_project = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: FACTORY_NOW, cache=False)
    open_project.load()
    assert not questions(open_project)
    read_or_make_secret()
    append_events(open_project.project, *trial_events(PATTERN, (0.8, 0.1), 80))
    open_project.apply((open_project.project.events,))
    (item,) = questions(open_project)
    assert item.subject == PATTERN and item.is_worth_reading and "by chance" in item.reason
    for action in ("accept", "reject"):
        found = answer(item, open_project.view, action)
        assert found is not None and not found.why_not
        open_project.decide(found.command)
        assert not questions(open_project)
        is_deprecated = open_project.view.assessment(PATTERN).state is Maturity.DEPRECATED
        assert is_deprecated is (action == "accept")
        open_project.decide(Undo())
        assert questions(open_project)


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
