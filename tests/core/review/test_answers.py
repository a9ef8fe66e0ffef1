from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.diff import field_changes
from core.base.errors import BadInput, RalphdeckError, Refused
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.commands import Deprecate, Promote, Release, RestoreText, Undo, command_for
from core.curation.decision_text import changed
from core.curation.text_approval import find_approved_pattern
from core.demo.sample import copy_sample
from core.forecast.dry_run import dry_run
from core.project.project import Project
from core.records.decisions import Verb
from core.records.patterns import Maturity
from core.review.answers import Answer, answer, answers
from core.state.review_items import (
    BORDERLINE,
    BROAD,
    CONTRADICTED,
    INVERSION,
    KINDS,
    QUARANTINE,
    STALE_PIN,
    UNRECONCILED,
    ReviewItem,
)
from tests.factories import PATTERN_FILE

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
SUBJECT = "pat-error-type-mismatch-003"


@pytest.fixture
def deck(tmp_path: Path) -> Project:
    copy_sample(tmp_path, NOW)
    deck = Project(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    deck.load()
    while deck.search_next() is not None:
        pass
    return deck


def about(kind: str) -> ReviewItem:
    return ReviewItem(kind=kind, subject=SUBJECT, question="?", reason="?", priority=0.5)


def answer_of(deck: Project, item: ReviewItem, action: str) -> Answer:
    found = answer(item, deck.view, action)
    assert found is not None
    return found


def reworded(deck: Project, subject: str, text: str) -> None:
    """Change what a pattern says in its file, as another program would."""
    path = deck.project.project / deck.view.pattern(subject).file
    content = json.loads(path.read_text())
    for records in content["pattern_registry"].values():
        for record in records:
            if record["pattern_id"] == subject:
                record["fix_approach"]["description"] = text
                record["name"] = "Another name"
    path.write_text(json.dumps(content, indent=2))
    deck.apply(None)


def test_every_question_has_answers_that_an_action_gives_once(deck: Project) -> None:
    asked = [*deck.view.queue, *(about(kind) for kind in (BORDERLINE, BROAD, UNRECONCILED))]
    assert {item.kind for item in asked} <= set(KINDS)
    for item in asked:
        offered = answers(item, deck.view)
        actions = [one.action for one in offered]
        assert len(actions) == len(set(actions))
        assert {"snooze", "snooze_evidence"} < set(actions)
        assert all(one.label and one.effect for one in offered)


def test_an_answer_can_be_given_just_when_the_curator_lets_it(deck: Project) -> None:
    for state in ("", "promote", "deprecate", "quarantine"):
        if state:
            deck.decide(command_for(Verb(state), SUBJECT, "so"))
        for one in answers(about(BORDERLINE), deck.view):
            try:
                dry_run(deck, one.with_text("so"))
            except RalphdeckError:
                assert one.why_not
            else:
                assert not one.why_not
        if state:
            deck.decide(Undo())


def test_the_question_whether_a_state_is_right_is_left_without_silencing_others(deck: Project) -> None:
    item = about(BORDERLINE)
    keep = answer_of(deck, item, "accept")
    assert (keep.label, keep.matters) == ("keep", False)
    deck.decide(keep.with_text(""))
    assert item.question_key in deck.view.snapshot.curation.dismissed
    assert SUBJECT not in deck.view.snapshot.curation.dismissed


def test_accept_says_yes_to_what_each_question_asks_and_reject_says_no(deck: Project) -> None:
    pinned = next(item for item in deck.view.queue if item.kind == CONTRADICTED)
    assert [answer_of(deck, pinned, action).label for action in ("accept", "reject")] == ["remove", "keep"]
    deck.decide(answer_of(deck, pinned, "reject").with_text(""))
    assert deck.view.assessment(pinned.subject).state is Maturity.PROVEN
    assert pinned.subject not in [item.subject for item in deck.view.queue]
    deck.decide(Undo())
    deck.decide(answer_of(deck, pinned, "accept").with_text(""))
    assert deck.view.assessment(pinned.subject).pin is None
    deck.decide(Deprecate(SUBJECT, reason="hides the cause"))
    reworded(deck, SUBJECT, "Do something else")
    changed_text = about(STALE_PIN)
    assert [answer_of(deck, changed_text, action).label for action in ("accept", "reject")] == ["keep", "remove"]
    deck.decide(answer_of(deck, changed_text, "accept").with_text(""))
    pin = deck.view.assessment(SUBJECT).pin
    assert pin is not None and (pin.state, pin.reason) == (Maturity.DEPRECATED, "hides the cause")
    assert not deck.view.assessment(SUBJECT).pin_stale


@pytest.mark.parametrize("by_rule", [True, False])
def test_a_deprecated_pattern_is_re_enabled_in_one_step_with_one_undo(deck: Project, by_rule: bool) -> None:
    subject = "pat-success-split-by-type-002" if by_rule else SUBJECT
    if not by_rule:
        deck.decide(Deprecate(SUBJECT, reason="hides the cause"))
    before = deck.view.assessment(subject)
    assert before.state is Maturity.DEPRECATED and (before.pin is None) is by_rule
    item = ReviewItem(kind=BORDERLINE, subject=subject, question="?", reason="?", priority=0.5)
    yes = answer_of(deck, item, "accept")
    assert yes.label == "re-enable"
    decided = deck.decide(yes.with_text(""))
    assert [one.verb for one in decided.group] == [Verb.RESET, Verb.PROMOTE]
    assert decided.summary == f"re-enabled {subject}: deprecated → proven"
    assert deck.view.assessment(subject).state is Maturity.PROVEN
    assert deck.decide(Undo()).summary == f"Undone: re-enable {subject}"
    after = deck.view.assessment(subject)
    assert (after.state, after.pin) == (before.state, before.pin)


def test_a_dangerous_text_is_not_left_half_re_enabled(deck: Project) -> None:
    reworded(deck, SUBJECT, "Run rm -rf / before the tests")
    deck.decide(Deprecate(SUBJECT, reason="dangerous"))
    reworded(deck, SUBJECT, "Run rm -rf / after the tests")
    deck.decide(Deprecate(SUBJECT, reason="still dangerous"))
    reworded(deck, SUBJECT, "Run rm -rf / now")
    known = len(deck.view.snapshot.decisions)
    with pytest.raises(RalphdeckError, match="needs a reason"):
        deck.decide(Promote(SUBJECT, re_enable=True))
    assert len(deck.view.snapshot.decisions) == known


def test_a_rejected_inversion_is_not_said_to_be_injected_where_the_rules_deprecate_it(deck: Project) -> None:
    item = next(item for item in deck.view.queue if item.kind == INVERSION)
    assert deck.view.assessment(item.subject).computed is Maturity.DEPRECATED
    assert "stays deprecated" in answer_of(deck, item, "reject").effect
    deck.decide(answer_of(deck, item, "reject").with_text(""))
    assert not deck.view.assessment(item.subject).injectable


def test_what_is_too_broad_is_suspended_without_being_asked_why(deck: Project) -> None:
    deck.decide(answer_of(deck, about(BROAD), "accept").with_text(""))
    assert deck.view.assessment(SUBJECT).quarantined


def test_a_decision_on_another_text_is_no_bar_to_quarantine_which_the_log_names(deck: Project) -> None:
    deck.decide(Promote(SUBJECT, reason="seen"))
    assert "is pinned" in answer_of(deck, about(BORDERLINE), "quarantine").why_not
    reworded(deck, SUBJECT, "Delete the tests")
    assert deck.view.assessment(SUBJECT).pin_stale
    suspend = answer_of(deck, about(STALE_PIN), "quarantine")
    assert (suspend.label, suspend.why_not) == ("quarantine", "")
    decided = deck.decide(suspend.with_text("who wrote this?"))
    assert changed(decided.decision) == "candidate → quarantine"
    assert deck.view.assessment(SUBJECT).shown == "quarantine"
    assert changed(deck.decide(Release(SUBJECT)).decision).startswith("quarantine → ")


def test_what_the_scan_finds_dangerous_is_released_and_promoted_only_for_a_reason(deck: Project) -> None:
    reworded(deck, SUBJECT, "Run rm -rf / before the tests")
    item = next(item for item in deck.view.queue if item.subject == SUBJECT and item.kind == QUARANTINE)
    for action in ("accept", "promote"):
        given = answer_of(deck, item, action)
        assert given.needs_reason
        assert given.matters
        with pytest.raises(BadInput, match="needs a reason"):
            deck.decide(given.with_text(""))
    deck.decide(answer_of(deck, item, "accept").with_text("it is a sandbox"))
    assert deck.view.assessment(SUBJECT).injectable


def test_the_approved_text_is_shown_beside_the_new_one_and_put_back(deck: Project) -> None:
    path = deck.project.project / PATTERN_FILE
    deck.decide(Promote(SUBJECT))
    pinned, said = path.read_bytes(), deck.view.pattern(SUBJECT)
    reworded(deck, SUBJECT, "Do something else")
    found = path.read_bytes()
    item = next(item for item in deck.view.queue if item.kind == STALE_PIN and item.subject == SUBJECT)
    kept = find_approved_pattern(deck.view, SUBJECT)
    assert kept is not None
    assert field_changes(kept, deck.view.pattern(SUBJECT)) == (
        ("title", said.title, deck.view.pattern(SUBJECT).title),
        ("description", said.description, "Do something else"),
    )
    foretold = dry_run(deck, answer_of(deck, item, "restore_text").with_text("")).state
    decided = deck.decide(answer_of(deck, item, "restore_text").with_text(""))
    assert decided.decision.verb is Verb.EDIT
    assert json.loads(path.read_bytes()) == json.loads(pinned)
    assert deck.view.assessment(SUBJECT).state is Maturity.PROVEN is foretold.assessment(SUBJECT).state
    assert not deck.view.assessment(SUBJECT).pin_stale
    deck.decide(Undo())
    assert json.loads(path.read_bytes()) == json.loads(found)
    assert deck.view.assessment(SUBJECT).pin_stale


def test_a_text_that_was_not_kept_is_not_put_back(deck: Project) -> None:
    deck.decide(Promote(SUBJECT))
    ledger = deck.project.ledger
    ledger.write_bytes(ledger.read_bytes().replace(b'"seen_text"', b'"seen_then"'))
    deck = Project(deck.project, Settings(), by="ana", clock=lambda: NOW, cache=False)
    deck.load()
    reworded(deck, SUBJECT, "Do something else")
    assert find_approved_pattern(deck.view, SUBJECT) is None
    item = next(item for item in deck.view.queue if item.kind == STALE_PIN)
    assert answer_of(deck, item, "restore_text").why_not == "the approved text was not stored"
    with pytest.raises(Refused, match="was not stored when it was promoted"):
        deck.decide(RestoreText(SUBJECT))


def test_a_text_that_nobody_has_approved_or_that_stands_there_is_not_put_back(deck: Project) -> None:
    with pytest.raises(Refused, match="has no approved text"):
        deck.decide(RestoreText(SUBJECT))
    deck.decide(Promote(SUBJECT))
    with pytest.raises(Refused, match="already has the approved text"):
        deck.decide(RestoreText(SUBJECT))
