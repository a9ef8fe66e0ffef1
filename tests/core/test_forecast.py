from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.curation.registry import Registry
from core.deck import Deck
from core.forecast import Forecast, forecast
from core.paths import ProjectPaths
from core.records.patterns import Maturity
from core.review.items import BURST, CONTRADICTED, DUPLICATE, EXTRACTED, INVERSION, OFFER, QUARANTINE, ReviewItem
from core.sample import copy_sample
from core.settings import Settings
from core.view import View

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    copy_sample(tmp_path, NOW)
    deck = Deck(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    deck.load()
    return deck


def question(view: View, kind: str) -> ReviewItem:
    return next(item for item in view.queue if item.kind == kind)


def told_of(deck: Deck, item: ReviewItem) -> Forecast:
    return forecast(deck.view, item, lambda pattern: Registry(deck.project).record(pattern).value)


def contexts(view: View) -> dict[str, str]:
    return {
        key: view.injection(loop.task).context
        for key, loop in view.snapshot.loops.items()
        if loop.status.active and loop.task
    }


def test_an_accepted_inversion_changes_what_it_was_said_to_change(deck: Deck) -> None:
    item = question(deck.view, INVERSION)
    before = contexts(deck.view)
    told = told_of(deck, item)
    deck.accept_inversion(item.subject)
    after = contexts(deck.view)
    assert told.answer == "accept"
    assert told.running == len(before)
    assert set(told.changed) == {key for key in before if before[key] != after[key]}


def test_the_context_shown_before_an_inversion_is_the_one_injected_after_it(deck: Deck) -> None:
    item = next(item for item in deck.view.queue if item.inversion and told_of(deck, item).changed)
    told = told_of(deck, item)
    deck.accept_inversion(item.subject)
    assert told.after == deck.view.injection(deck.view.loop(told.changed[0]).task).context


def test_an_accepted_anti_pattern_is_injected_although_its_counts_alone_would_deprecate_it(deck: Deck) -> None:
    item = next(
        item
        for item in deck.view.queue
        if item.inversion and item.inversion.total * 0.3 < item.inversion.total - item.inversion.failures
    )
    anti = str(deck.accept_inversion(item.subject).decision.after["anti_id"])
    assessment = deck.view.assessment(anti)
    assert assessment.computed is Maturity.DEPRECATED
    assert assessment.state is Maturity.ESTABLISHED
    assert assessment.injectable
    assert not assessment.contradicted
    assert not assessment.pin_stale
    deck.undo()
    assert anti not in deck.view.snapshot.patterns
    assert anti not in deck.view.snapshot.curation.pins


def test_a_reset_changes_what_it_was_said_to_change(deck: Deck) -> None:
    item = question(deck.view, CONTRADICTED)
    before = contexts(deck.view)
    told = told_of(deck, item)
    deck.reset(item.subject)
    after = contexts(deck.view)
    assert told.answer == "reset"
    assert set(told.changed) == {key for key in before if before[key] != after[key]}
    if told.changed:
        assert (told.before, told.after) == (before[told.changed[0]], after[told.changed[0]])


def test_nothing_is_changed_by_looking_ahead(deck: Deck) -> None:
    view = deck.view
    files = {path: path.read_bytes() for path in deck.project.aiwg.rglob("*") if path.is_file()}
    states = {key: view.assessment(key) for key in view.snapshot.patterns}
    for item in view.queue:
        told_of(deck, item)
    assert {key: view.assessment(key) for key in view.snapshot.patterns} == states
    assert {path: path.read_bytes() for path in deck.project.aiwg.rglob("*") if path.is_file()} == files


def test_without_a_running_loop_the_patterns_own_topic_is_compared(deck: Deck) -> None:
    for folder in (deck.project.ralph / "loops").iterdir():
        for file in folder.glob("state.json"):
            file.write_text(file.read_text().replace('"running"', '"completed"'))
    deck.apply(None)
    assert not contexts(deck.view)
    item = question(deck.view, CONTRADICTED)
    told = told_of(deck, item)
    assert told.running == 0
    assert told.changed == ()
    if deck.view.assessment(item.subject).computed is Maturity.DEPRECATED:
        assert item.subject not in told.after


def test_a_confirmed_burst_turns_what_it_was_said_to_turn(deck: Deck) -> None:
    item = question(deck.view, BURST)
    told = told_of(deck, item)
    before = {id: deck.view.assessment(id).state for id in deck.view.snapshot.patterns}
    given = contexts(deck.view)
    deck.confirm(item.subject)
    after = {id: deck.view.assessment(id).state for id in deck.view.snapshot.patterns}
    assert told.answer == "confirm"
    assert set(told.turned) == {(id, before[id], after[id]) for id in before if before[id] is not after[id]}
    assert told.turned
    assert set(told.changed) == {key for key, text in contexts(deck.view).items() if text != given[key]}


def look(deck: Deck) -> None:
    while deck.look_further() is not None:
        pass


def check_changes(told: Forecast, before: dict[str, str], deck: Deck) -> None:
    """The contexts of the running loops are now what was foretold."""
    after = contexts(deck.view)
    assert set(told.changed) == {key for key in before if before[key] != after[key]}
    if told.changed:
        assert (told.before, told.after) == (before[told.changed[0]], after[told.changed[0]])


def injected(deck: Deck) -> str:
    """A pattern that a running loop would get."""
    loop = next(loop for loop in deck.view.snapshot.loops.values() if loop.status.active and loop.task)
    return deck.view.injection(loop.task).chosen[0].pattern_id


def test_a_release_changes_what_it_was_said_to_change(deck: Deck) -> None:
    subject = injected(deck)
    deck.quarantine(subject, reason="who wrote this?")
    before = contexts(deck.view)
    item = question(deck.view, QUARANTINE)
    told = told_of(deck, item)
    state = deck.view.assessment(subject).state
    deck.release(subject)
    assert told.answer == "release"
    assert told.changed
    check_changes(told, before, deck)
    assert told.turned == (
        () if deck.view.assessment(subject).state is state else ((subject, state, deck.view.assessment(subject).state),)
    )


def test_archiving_what_was_extracted_unattended_changes_what_it_was_said_to_change(deck: Deck) -> None:
    look(deck)
    deck.extract(next(iter(deck.view.offers)), unattended=True)
    item = question(deck.view, EXTRACTED)
    before = contexts(deck.view)
    told = told_of(deck, item)
    deck.archive(item.subject, reason="rejected in review")
    assert told.answer == "archive"
    check_changes(told, before, deck)


def test_an_extraction_changes_what_it_was_said_to_change(deck: Deck) -> None:
    look(deck)
    for item in [item for item in deck.view.queue if item.kind == OFFER]:
        before = contexts(deck.view)
        told = told_of(deck, item)
        deck.extract(item.subject)
        assert told.answer == "extract"
        check_changes(told, before, deck)


def duplicated(deck: Deck, subject: str) -> str:
    """Add a pattern that says the same as another one, with loops and counts of its own; returns its id."""
    pattern = deck.view.pattern(subject)
    path = deck.project.pattern_file(pattern.type.value)
    content = json.loads(path.read_text())
    records = next(iter(content["pattern_registry"].values()))
    (record,) = [one for one in records if one["pattern_id"] == subject]
    copy = {
        **record,
        "pattern_id": f"{subject[:-3]}901",
        "source_loops": [{"loop_id": "ralph-elsewhere-00000001", "timestamp": "2026-11-01T10:00:00Z"}],
        "success_rate": 0.5,
        "usage_count": 2,
    }
    records.append({key: value for key, value in copy.items() if not key.endswith(("applications", "trend"))})
    path.write_text(json.dumps(content))
    deck.apply(None)
    look(deck)
    return str(copy["pattern_id"])


def test_a_merge_gives_what_it_was_said_to_give(deck: Deck) -> None:
    subject = "pat-error-type-mismatch-003"
    other = duplicated(deck, subject)
    item = question(deck.view, DUPLICATE)
    assert {item.subject, item.other} == {subject, other}
    before = contexts(deck.view)
    told = told_of(deck, item)
    assert told.answer == "merge"
    merger = told.merger
    assert merger is not None
    deck.merge(item.subject, item.other)
    assert merger.after == deck.view.assessment(item.subject)
    assert merger.after.uses == sum(assessment.uses for assessment in merger.before)
    assert other in merger.result.aliases
    found = deck.view.pattern(item.subject)
    assert (merger.result.claim, merger.result.source_loops, merger.result.content_hash) == (
        found.claim,
        found.source_loops,
        found.content_hash,
    )
    assert [event for event in deck.view.lineage(item.subject) if event in merger.lineage] == list(merger.lineage)
    check_changes(told, before, deck)
