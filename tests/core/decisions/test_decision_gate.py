"""A gate that refuses decisions: nothing of them is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import Conflict, Refused
from core.base.paths import ProjectPaths
from core.decisions.commands import Deprecate, Promote, Reset
from core.decisions.conflicts import conflict_keys
from core.decisions.curator import Curator, Target
from core.records.decisions import Decision, Effect, Verb
from core.sources.fold import fold
from tests.factories import (
    CURATION_NOW,
    decide,
    decide_many,
    make_assessment,
    make_error_pattern,
    make_project,
    read_overrides,
)

IDS = ("pat-error-a-001", "pat-error-b-001", "pat-error-c-001")
A = make_error_pattern(IDS[0])
WHY = "ben decided 2 m ago: deprecate; review it again"


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path, *IDS)


class Gate:
    """Refuses decisions on some patterns, and records the questions."""

    note = ""

    def __init__(self, *stopped: str) -> None:
        self.stopped = stopped
        self.asked: list[tuple[list[str], bool]] = []

    def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
        self.asked.append(([decision.subject for decision in decisions], is_whole))
        return {decision.id: WHY for decision in decisions if decision.subject in self.stopped}


def test_a_refused_decision_is_not_written(curator: Curator, paths: ProjectPaths) -> None:
    curator.gate = Gate(A.id)
    with pytest.raises(Conflict, match="ben decided"):
        decide(curator, Promote, A, make_assessment(), now=CURATION_NOW)
    assert curator.ledger.decisions() == ()
    assert read_overrides(paths) == {}


def test_a_decision_that_a_rule_forbids_does_not_reach_the_gate(curator: Curator) -> None:
    gate = curator.gate = Gate()
    with pytest.raises(Refused):
        decide(curator, Reset, A, make_assessment(), now=CURATION_NOW)
    assert gate.asked == []


def test_a_bulk_decision_leaves_out_what_the_gate_refuses(curator: Curator, paths: ProjectPaths) -> None:
    gate = curator.gate = Gate(IDS[1])
    targets = [Target(make_error_pattern(key), make_assessment()) for key in IDS]
    decided = decide_many(curator, Verb.PROMOTE, targets, now=CURATION_NOW, known=0)
    assert [decision.subject for decision in decided.decisions] == [IDS[0], IDS[2]]
    assert [(refusal.pattern_id, refusal.why) for refusal in decided.refused] == [(IDS[1], WHY)]
    assert decided.summary == "promoted 2 of 3 patterns"
    assert WHY in decided.warnings
    assert read_overrides(paths).keys() == {IDS[0], IDS[2]}
    assert gate.asked == [(list(IDS), False)]


def test_an_undo_is_made_as_a_whole_or_not_at_all(curator: Curator) -> None:
    targets = [Target(make_error_pattern(key), make_assessment()) for key in IDS]
    made = decide_many(curator, Verb.PROMOTE, targets, now=CURATION_NOW, known=0)
    gate = curator.gate = Gate(made.decisions[1].id)
    with pytest.raises(Conflict, match="ben decided"):
        curator.undo(now=CURATION_NOW)
    assert gate.asked[0][1]
    assert len(curator.ledger.decisions()) == len(IDS)


def test_a_gate_that_refuses_the_author_stops_the_whole_act(curator: Curator) -> None:
    class Role:
        note = ""

        def admit(self, decisions: Sequence[Decision], *, is_whole: bool) -> Mapping[str, str]:
            raise Refused("your role in the space 'shop' is contributor; promote needs reviewer")

    curator.gate = Role()
    with pytest.raises(Refused, match="contributor"):
        decide(curator, Deprecate, A, make_assessment(), now=CURATION_NOW, reason="x")
    assert curator.ledger.decisions() == ()


SUBJECTS = ("pat-error-a-001", "pat-error-b-001")
PLAIN = (Verb.PROMOTE, Verb.DEPRECATE, Verb.RESET, Verb.NOTE, Verb.SNOOZE, Verb.QUARANTINE, Verb.RELEASE)
INVERSION = (Verb.ACCEPT_INVERSION, Verb.REJECT_INVERSION, Verb.DISMISS, Verb.ARCHIVE, Verb.EXTRACT)


@st.composite
def some_decision(draw: st.DrawFn, number: int) -> Decision:
    verb, subject = draw(st.sampled_from(PLAIN + INVERSION)), draw(st.sampled_from(SUBJECTS))
    after: dict[str, object] = {"content_hash": draw(st.sampled_from(("v1", "v2"))), "text": f"text {number}"}
    effects: tuple[Effect, ...] = ()
    if verb is Verb.SNOOZE:
        after["until"] = f"2026-06-0{number + 1}T00:00:00.000Z"
    if verb is Verb.QUARANTINE:
        after["hashes"] = {subject: "v1"}
    if verb is Verb.ACCEPT_INVERSION:
        after["anti_id"] = f"pat-anti-{number}-001"
    if verb is Verb.EXTRACT:
        effects = (Effect(file="f", type="error", pattern_id=subject, insert={"pattern_id": subject}),)
        after |= {"patterns": [subject], "hashes": {subject: "v1"}}
        subject = "ralph-loop"
    if verb is Verb.ARCHIVE:
        after["patterns"] = [subject]
    at = CURATION_NOW + timedelta(minutes=draw(st.integers(-3, 3)))
    by = draw(st.sampled_from(("ana", "ben")))
    return Decision(id=f"d{number}", at=at, by=by, verb=verb, subject=subject, after=after, effects=effects)


@given(first=some_decision(0), second=some_decision(1))
def test_two_decisions_without_a_common_key_can_be_made_in_any_order(first: Decision, second: Decision) -> None:
    if set(conflict_keys(first, {})) & set(conflict_keys(second, {})):
        return
    one, other = fold((first, second)), fold((second, first))
    for field in ("pins", "inversions", "notes", "arrivals", "cleared", "approved", "extracted", "dismissed", "reset"):
        assert getattr(one, field) == getattr(other, field)


def test_a_redo_of_another_member_counts_after_a_new_decision_here() -> None:
    def made(number: int, verb: Verb, subject: str) -> Decision:
        return Decision(id=f"d{number}", at=CURATION_NOW, by="ana", verb=verb, subject=subject)

    turned = [made(1, Verb.PROMOTE, "a"), made(2, Verb.UNDO, "d1"), made(3, Verb.NOTE, "b"), made(4, Verb.REDO, "d1")]
    assert fold(turned).pins.keys() == {"a"}
    assert fold(turned).undone == frozenset()
