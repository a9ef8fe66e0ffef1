"""Acts of several decisions, and a gate that refuses some."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput, Conflict, Refused, StaleDecision, UnknownRecord
from core.base.paths import ProjectPaths
from core.decisions.case import Decided
from core.decisions.commands import Deprecate, Promote, Reset, bulk
from core.decisions.conflicts import conflict_keys
from core.decisions.curator import Curator, Target
from core.records.decisions import Decision, Effect, Verb
from core.records.patterns import Maturity
from core.sources.fold import fold
from core.sources.ledger import Ledger
from tests.factories import (
    CURATION_NOW,
    decide,
    decide_many,
    make_assessment,
    make_curator,
    make_error_pattern,
    make_failing_assessment,
    make_inversion,
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
        decide(curator, Promote, A)
    assert curator.ledger.decisions() == ()
    assert read_overrides(paths) == {}


def test_a_decision_that_a_rule_forbids_does_not_reach_the_gate(curator: Curator) -> None:
    gate = curator.gate = Gate()
    with pytest.raises(Refused):
        decide(curator, Reset, A)
    assert gate.asked == []


def test_a_bulk_decision_leaves_out_what_the_gate_refuses(curator: Curator, paths: ProjectPaths) -> None:
    gate = curator.gate = Gate(IDS[1])
    targets = [Target(make_error_pattern(key), make_assessment()) for key in IDS]
    decided = decide_many(curator, Verb.PROMOTE, targets, known=0)
    assert [decision.subject for decision in decided.decisions] == [IDS[0], IDS[2]]
    assert [(refusal.pattern_id, refusal.why) for refusal in decided.refused] == [(IDS[1], WHY)]
    assert decided.summary == "promoted 2 of 3 patterns"
    assert WHY in decided.warnings
    assert read_overrides(paths).keys() == {IDS[0], IDS[2]}
    assert gate.asked == [(list(IDS), False)]


def test_an_undo_is_made_as_a_whole_or_not_at_all(curator: Curator) -> None:
    targets = [Target(make_error_pattern(key), make_assessment()) for key in IDS]
    made = decide_many(curator, Verb.PROMOTE, targets, known=0)
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
        decide(curator, Deprecate, A, reason="x")
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


ASKED = tuple(Target(make_error_pattern(key), make_assessment()) for key in IDS)


def decide_all(
    curator: Curator, verb: Verb = Verb.PROMOTE, asked: tuple[Target, ...] = ASKED, reason: str = ""
) -> Decided:
    return decide_many(curator, verb, asked, reason=reason)


def stored(paths: ProjectPaths) -> list[dict[str, Any]]:
    records: list[dict[str, Any]]
    (records,) = json.loads(paths.pattern_file("error").read_bytes())["pattern_registry"].values()
    return records


def test_bulk_decision_writes_one_line_per_pattern_and_is_undone_together(
    curator: Curator, paths: ProjectPaths
) -> None:
    before = paths.pattern_file("error").read_bytes()
    decided = decide_all(curator, reason="looked at all of them")
    assert decided.summary == "promoted 3 patterns"
    assert [one.subject for one in Ledger(paths).decisions()] == list(IDS)
    assert {one.group for one in decided.decisions} == {decided.decision.group} != {""}
    assert read_overrides(paths).keys() == {*IDS}
    taken = curator.undo(now=CURATION_NOW)
    assert taken.summary == "Undone: promote 3 patterns"
    assert [one.subject for one in taken.decisions] == [one.id for one in reversed(decided.decisions)]
    assert paths.pattern_file("error").read_bytes() == before
    assert not curator.ledger.state().pins
    assert curator.redo(now=CURATION_NOW).summary == "Redone: promote 3 patterns"
    assert read_overrides(paths).keys() == curator.ledger.state().pins.keys() == {*IDS}
    with pytest.raises(Refused):
        curator.redo(now=CURATION_NOW)


def test_bulk_decision_reports_refusals_and_decides_the_rest(curator: Curator, paths: ProjectPaths) -> None:
    decide(curator, Promote, make_error_pattern(IDS[1]))
    progress_calls: list[tuple[int, int]] = []
    targets = {target.pattern.id: target for target in ASKED}

    def find(pattern_id: str) -> Target:
        if pattern_id not in targets:
            raise UnknownRecord("no pattern of this id")
        return targets[pattern_id]

    command = bulk(Verb.PROMOTE, [*targets, "pat-error-z-001"])
    known = curator.settled_count()
    decided = curator.decide(
        command, find, now=CURATION_NOW, known=known, progress=lambda *far: progress_calls.append(far)
    )
    assert decided.summary == "promoted 2 of 4 patterns"
    assert [refusal.pattern_id for refusal in decided.refused] == ["pat-error-z-001", IDS[1]]
    assert decided.warnings == ("no pattern of this id", f"{IDS[1]} is already promoted (by alice on 3 May 2026)")
    assert progress_calls == [(1, 3), (2, 3), (3, 3)]
    curator.undo(now=CURATION_NOW)
    assert curator.ledger.state().pins.keys() == {IDS[1]}


def test_bulk_decision_writes_nothing_if_all_are_refused(curator: Curator, paths: ProjectPaths) -> None:
    with pytest.raises(Refused, match=r"needs a reason \(and 2 more like this\)"):
        decide_all(curator, Verb.DEPRECATE)
    with pytest.raises(BadInput, match="not a decision about one pattern"):
        decide_all(curator, Verb.MERGE)
    with pytest.raises(Refused, match="nothing to decide"):
        decide_all(curator, asked=())
    assert not paths.ledger.exists()


def test_bulk_decision_limits_the_listed_warnings(paths: ProjectPaths) -> None:
    ids = [f"pat-error-a-{number:03d}" for number in range(1, 20)]
    asked = tuple(Target(make_error_pattern(key), make_assessment(1, 0, Maturity.CANDIDATE)) for key in ids)
    decided = decide_all(make_curator(paths), asked=asked)
    assert len(decided.warnings) == 7
    assert decided.warnings[-1] == "and 31 more like this"  # each is a candidate, and all but one have no record


def test_inversions_of_one_act_get_different_ids(curator: Curator, paths: ProjectPaths) -> None:
    asked = tuple(
        Target(make_error_pattern(key), make_failing_assessment(), partial(make_inversion, key)) for key in IDS
    )
    before = paths.pattern_file("error").read_bytes()
    decided = decide_all(curator, Verb.ACCEPT_INVERSION, asked)
    assert [one.after["anti_id"] for one in decided.decisions] == [f"pat-anti-split-by-type-00{n}" for n in (1, 2, 3)]
    assert read_overrides(paths, "anti").keys() == {one.after["anti_id"] for one in decided.decisions}
    curator.undo(now=CURATION_NOW)
    assert paths.pattern_file("error").read_bytes() == before
    assert read_overrides(paths, "anti") == {}


def test_bulk_archive_is_refused_if_the_ledger_changed(curator: Curator, paths: ProjectPaths) -> None:
    before = stored(paths)
    with pytest.raises(StaleDecision):
        decide_many(curator, Verb.ARCHIVE, ASKED, known=7, reason="old")
    decided = decide_all(curator, Verb.ARCHIVE, reason="old")
    assert [one.subject for one in decided.decisions] == list(IDS)
    assert stored(paths) == []
    curator.undo(now=CURATION_NOW)
    assert sorted(stored(paths), key=str) == before


def test_notes_and_snoozes_apply_to_many_patterns(curator: Curator) -> None:
    decide_all(curator, Verb.NOTE, reason="see the incident")
    decide_many(curator, Verb.SNOOZE, ASKED, until=CURATION_NOW + timedelta(days=7))
    state = curator.ledger.state()
    assert state.notes.keys() == state.inversions.keys() == {*IDS}
    with pytest.raises(Refused, match="snooze needs an end"):
        decide_all(curator, Verb.SNOOZE)
