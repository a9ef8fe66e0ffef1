from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.curation.review import BURST, CONTRADICTED, INVERSION, ReviewItem
from core.deck import Deck, View
from core.forecast import forecast
from core.paths import ProjectPaths
from core.records.patterns import Maturity
from core.sample import copy_sample
from core.settings import Settings

NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)


@pytest.fixture
def deck(tmp_path: Path) -> Deck:
    copy_sample(tmp_path, NOW)
    deck = Deck(ProjectPaths(tmp_path), Settings(), by="ana", clock=lambda: NOW, cache=False)
    deck.load()
    return deck


def question(view: View, kind: str) -> ReviewItem:
    return next(item for item in view.queue if item.kind == kind)


def contexts(view: View) -> dict[str, str]:
    return {
        key: view.injection(loop.task).context
        for key, loop in view.snapshot.loops.items()
        if loop.status.active and loop.task
    }


def test_an_accepted_inversion_changes_what_it_was_said_to_change(deck: Deck) -> None:
    item = question(deck.view, INVERSION)
    before = contexts(deck.view)
    told = forecast(deck.view, item)
    deck.accept_inversion(item.subject)
    after = contexts(deck.view)
    assert told.answer == "accept"
    assert told.running == len(before)
    assert set(told.changed) == {key for key in before if before[key] != after[key]}


def test_the_context_shown_before_an_inversion_is_the_one_injected_after_it(deck: Deck) -> None:
    item = next(item for item in deck.view.queue if item.inversion and forecast(deck.view, item).changed)
    told = forecast(deck.view, item)
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
    told = forecast(deck.view, item)
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
        forecast(view, item)
    assert {key: view.assessment(key) for key in view.snapshot.patterns} == states
    assert {path: path.read_bytes() for path in deck.project.aiwg.rglob("*") if path.is_file()} == files


def test_without_a_running_loop_the_patterns_own_topic_is_compared(deck: Deck) -> None:
    for folder in (deck.project.ralph / "loops").iterdir():
        for file in folder.glob("state.json"):
            file.write_text(file.read_text().replace('"running"', '"completed"'))
    deck.apply(None)
    assert not contexts(deck.view)
    item = question(deck.view, CONTRADICTED)
    told = forecast(deck.view, item)
    assert told.running == 0
    assert told.changed == ()
    if deck.view.assessment(item.subject).computed is Maturity.DEPRECATED:
        assert item.subject not in told.after


def test_a_confirmed_burst_turns_what_it_was_said_to_turn(deck: Deck) -> None:
    item = question(deck.view, BURST)
    told = forecast(deck.view, item)
    before = {id: deck.view.assessment(id).state for id in deck.view.snapshot.patterns}
    given = contexts(deck.view)
    deck.confirm(item.subject)
    after = {id: deck.view.assessment(id).state for id in deck.view.snapshot.patterns}
    assert told.answer == "confirm"
    assert set(told.turned) == {(id, before[id], after[id]) for id in before if before[id] is not after[id]}
    assert told.turned
    assert set(told.changed) == {key for key, text in contexts(deck.view).items() if text != given[key]}
