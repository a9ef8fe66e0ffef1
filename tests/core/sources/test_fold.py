from __future__ import annotations

from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from core.records.decisions import CurationState, Decision, Verb
from core.records.patterns import Maturity
from core.sources.fold import fold
from tests.factories import CURATION_NOW


def made(number: int, verb: Verb, subject: str = "p", **after: Any) -> Decision:
    return Decision(
        id=f"d{number}",
        at=CURATION_NOW + timedelta(minutes=number),
        by="alice",
        verb=verb,
        subject=subject,
        reason="because",
        after=after,
    )


PROMOTE = made(1, Verb.PROMOTE, content_hash="v1", successes=4, failures=1)
DEPRECATE = made(2, Verb.DEPRECATE, content_hash="v2")


def test_nothing_decided_is_the_empty_state() -> None:
    assert fold(()) == CurationState()


def test_a_promotion_pins_the_reviewed_text() -> None:
    pin = fold([PROMOTE]).pins["p"]
    assert (pin.state, pin.content_hash, pin.successes, pin.failures) == (Maturity.PROVEN, "v1", 4, 1)
    assert (pin.at, pin.by, pin.reason, pin.decision_id) == (PROMOTE.at, "alice", "because", "d1")


def test_the_last_pin_counts_and_undo_restores_the_previous_one() -> None:
    state = fold([PROMOTE, DEPRECATE])
    assert state.pins["p"].state is Maturity.DEPRECATED
    state = fold([PROMOTE, DEPRECATE, made(3, Verb.UNDO, "d2")])
    assert state.pins == fold([PROMOTE]).pins
    assert (state.undone, state.undoable, state.redoable) == (frozenset({"d2"}), ("d1",), ("d2",))


def test_redo_restores_exactly() -> None:
    turned = [PROMOTE, DEPRECATE, made(3, Verb.UNDO, "d2"), made(4, Verb.REDO, "d2")]
    assert replace(fold(turned), acts={}) == replace(fold([PROMOTE, DEPRECATE]), acts={})


def test_a_new_decision_ends_the_chance_to_redo() -> None:
    state = fold([PROMOTE, made(2, Verb.UNDO, "d1"), made(3, Verb.NOTE, text="x")])
    assert (state.undone, state.undoable, state.redoable) == (frozenset({"d1"}), ("d3",), ())
    assert state.pins == {}


def test_only_a_text_that_a_person_released_becomes_guidance() -> None:
    release = made(1, Verb.RELEASE, content_hash="v1")
    by_script = fold([replace(release, by="alice (script)")])
    assert by_script.approves("p", "v1") and not by_script.approves_as_guidance("p", "v1")
    assert fold([release]).approves_as_guidance("p", "v1")
    assert not fold([release, made(2, Verb.QUARANTINE)]).approves_as_guidance("p", "v1")


def test_reset_removes_only_the_pin() -> None:
    state = fold([made(1, Verb.ACCEPT_INVERSION, anti_id="pat-anti-a-001"), made(2, Verb.RESET)])
    assert set(state.pins) == {"pat-anti-a-001"}
    assert state.inversions["p"].verdict == "accepted"
    assert state.inversions["p"].anti_id == "pat-anti-a-001"


def test_verdicts_follow_each_other() -> None:
    rejected = made(1, Verb.REJECT_INVERSION, failures=5)
    snoozed = made(2, Verb.SNOOZE, until="2026-06-01T00:00:00.000Z")
    assert fold([rejected]).inversions["p"].failures == 5
    assert fold([snoozed]).inversions["p"].verdict == "snoozed"
    both = fold([rejected, snoozed]).inversions["p"]
    assert (both.verdict, both.failures) == ("rejected", 5)
    assert both.until is not None
    assert fold([rejected, snoozed, made(3, Verb.UNDO, "d2")]).inversions == fold([rejected]).inversions


def test_notes_collect_by_pattern() -> None:
    notes = [made(1, Verb.NOTE, text="one"), made(2, Verb.NOTE, "q", text="x"), made(3, Verb.NOTE, text="two")]
    assert fold(notes).notes == {"p": (notes[0], notes[2]), "q": (notes[1],)}


def test_a_ledger_merged_by_hand_is_folded_safely() -> None:
    state = fold(
        [
            made(1, Verb.UNDO, "nothing"),
            made(2, Verb.REDO, "nothing"),
            PROMOTE,
            PROMOTE,
            made(3, Verb.UNDO, "d1"),
            made(4, Verb.UNDO, "d1"),
            made(5, Verb.PROMOTE, "q", content_hash=7, successes="many", failures=-1),
        ]
    )
    assert state.undoable == ("d5",)
    pin = state.pins["q"]
    assert (pin.content_hash, pin.successes, pin.failures) == ("", 0, 0)
