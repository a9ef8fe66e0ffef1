"""Decisions that projects of a team receive from each other: each is in every log once, and has the same effect."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import core.files.atomic_write
from core.base.errors import RalphdeckError, Refused
from core.base.paths import TRUSTED_PATHS
from core.decisions.commands import (
    AcceptInversion,
    Archive,
    Command,
    Deprecate,
    Merge,
    Note,
    Promote,
    Quarantine,
    Redo,
    Release,
    Reset,
    Restore,
    Snooze,
    Undo,
    bulk,
)
from core.project.notifications import NotificationKind, find_notifications
from core.records.decisions import SYNC, Verb
from core.records.findings import Severity
from core.records.patterns import Maturity
from core.records.snapshot import Delta
from tests.core.team.exchange import IDS, Member, MemorySpace, comparable
from tests.core.team.working_copy import Clock

A, B, C = IDS


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_CHECK_SECONDS", ())
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Member, Member]:
    space, clock = MemorySpace(), Clock()
    return Member(space, tmp_path / "ana", "ana", clock), Member(space, tmp_path / "ben", "ben", clock)


def assert_same(*members: Member) -> None:
    first = members[0]
    for member in members[1:]:
        assert comparable(member.state) == comparable(first.state)
        assert member.records() == first.records()


def overrides(member: Member) -> dict[str, str]:
    return {key: record["override"]["state"] for key, record in member.records().items() if "override" in record}


def test_a_promotion_arrives_with_its_override(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    made = ana.project.decide(Promote(A, reason="used daily")).decision
    ben.sync()
    pin = ben.state.pins[A]
    assert (pin.state, pin.by, pin.reason, pin.decision_id) == (Maturity.PROVEN, "ana", "used daily", made.id)
    assert ben.records()[A]["override"] == ana.records()[A]["override"]
    assert ben.project.view.assessment(A).state is Maturity.PROVEN


def test_a_decision_received_again_changes_nothing(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(Promote(A))
    ben.sync()
    before = ben.paths.ledger.read_bytes(), ben.records()
    ben.pull(again_from=0)
    ana.pull(again_from=0)
    assert (ben.paths.ledger.read_bytes(), ben.records()) == before
    assert len(ana.ledger.decisions()) == len(ben.ledger.decisions()) == 1


def test_a_received_decision_can_be_undone_and_redone_here(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(Promote(A))
    ben.sync()
    with pytest.raises(Refused, match="made by ana"):
        ben.project.decide(Undo())
    ben.project.decide(Undo(any_author=True))
    ana.sync()
    assert overrides(ana) == overrides(ben) == {}
    assert ana.state.pins == ben.state.pins == {}
    ana.project.decide(Redo())
    ben.sync()
    assert overrides(ana) == overrides(ben) == {A: "proven"}
    assert_same(ana, ben)


def test_a_bulk_decision_stays_one_act(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(bulk(Verb.PROMOTE, (A, B)))
    ben.sync()
    assert overrides(ben) == {A: "proven", B: "proven"}
    ben.project.decide(Undo(any_author=True))
    ana.sync()
    assert overrides(ana) == overrides(ben) == {}
    assert len(ben.ledger.decisions()) == 4
    assert_same(ana, ben)


def test_archive_and_restore_keep_the_counts_of_each_project(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    file = ben.paths.pattern_file("error")
    file.write_text(file.read_text().replace('"usage_count": 10', '"usage_count": 7', 1))
    ben.project.apply((file,))
    ana.project.decide(Archive(A, reason="outdated"))
    ben.sync()
    assert A not in ben.records()
    archived = (ben.paths.archive / "2026-11-patterns.json").read_text()
    assert '"usage_count": 7' in archived
    assert '"reason": "outdated"' in archived
    ana.project.decide(Restore(A))
    ben.sync()
    assert ben.records()[A]["usage_count"] == 7
    ana.project.decide(Undo())
    ben.sync()
    assert A not in ben.records()
    assert A not in ana.records()


def test_a_merge_adds_up_the_counts_of_each_project(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(Merge(A, B))
    ben.sync()
    assert ben.records()[A]["aliases"] == [B]
    assert ben.records()[A]["usage_count"] == 20
    assert B not in ben.records()
    ben.project.decide(Undo(any_author=True))
    ana.sync()
    assert_same(ana, ben)
    assert ana.records()[A]["usage_count"] == 10


def test_what_was_decided_offline_is_undone_with_a_warning_if_another_member_was_first(
    pair: tuple[Member, Member],
) -> None:
    ana, ben = pair
    ben.is_online = False
    late = ben.project.decide(Deprecate(A, reason="hides the cause")).decision
    kept = ben.project.decide(Promote(B)).decision
    ana.project.decide(Promote(A, reason="used daily"))
    before, ben.is_online = ben.project.view, True
    ben.sync()
    news = find_notifications(before, ben.project.view, Delta(decisions=True))
    (refused,) = (one for one in news if one.what is NotificationKind.REFUSED)
    assert refused.severity is Severity.WARNING
    assert refused.text.startswith(f"Undone: deprecate {A}. ana had decided on 20 November 2026 at ")
    assert any(one.text == f"ana: promote {A}" for one in news)
    ana.sync()
    assert_same(ana, ben)
    (undo,) = (one for one in ben.ledger.decisions() if one.by == SYNC)
    assert (undo.verb, undo.subject) == (Verb.UNDO, late.id)
    assert undo.reason == "ana had decided on 20 November 2026 at 12:00 UTC: promote pat-error-a-001 (used daily)"
    assert overrides(ben) == {A: "proven", B: "proven"}
    assert kept.id in ana.ledger
    assert late.id not in ana.ledger
    with pytest.raises(Refused, match="nothing to redo"):
        ben.project.decide(Redo())


def test_what_depends_on_a_refused_decision_is_undone_with_it(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ben.is_online = False
    ben.project.decide(Promote(A))
    ben.project.decide(Deprecate(A, reason="second thoughts"))
    ben.project.decide(Note(A, text="stays"))
    ana.project.decide(Quarantine(A, reason="looks odd"))
    ben.is_online = True
    ben.sync()
    ana.sync()
    assert_same(ana, ben)
    assert [note.after["text"] for note in ana.state.notes[A]] == ["stays"]


def test_an_undo_made_offline_is_itself_undone_after_a_conflict(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(Promote(A))
    ben.sync()
    ben.is_online = False
    ben.project.decide(Undo(any_author=True))
    ana.project.decide(Deprecate(A, reason="hides the cause"))
    ben.is_online = True
    ben.sync()
    ana.sync()
    assert_same(ana, ben)
    assert overrides(ben) == {A: "deprecated"}


def test_a_decision_that_arrives_before_the_refusal_prevents_it(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ben.is_online = False
    ben.project.decide(Deprecate(A, reason="hides the cause"))
    ana.project.decide(Promote(A))
    ben.pull()
    assert overrides(ben) == {A: "proven"}
    ben.project.decide(Undo(any_author=True))
    assert overrides(ben) == {}


def test_masked_texts_have_the_hash_of_the_local_text(pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    ana.project.decide(Promote(A))
    shared = ana.project.view.pattern(A).content_hash
    receiver = ben.receiver(lambda hash: f"local {hash}" if hash == shared else hash)
    (received,) = receiver.receive(ana.space.decisions, ben.clock())
    assert received.after["content_hash"] == f"local {shared}"
    assert received.after["seen_text"] == {}


class Machine(RuleBasedStateMachine):
    """Three reviewers decide in any order, online and offline, and exchange what they decided with repeats."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        space, clock = MemorySpace(), Clock()
        self.members = [Member(space, self.folder / name, name, clock) for name in ("ana", "ben", "eva")]

    def teardown(self) -> None:
        for _ in range(2):
            for member in self.members:
                member.is_online = True
                member.sync()
        assert_same(*self.members)
        for member in self.members:
            assert not member.unsent()
            assert member.ledger.pending() == ()
            pins = {key: pin.decision_id for key, pin in member.state.pins.items() if key in member.records()}
            found = {key: record.get("override", {}).get("decision") for key, record in member.records().items()}
            assert {key: value for key, value in found.items() if value} == pins
        shutil.rmtree(self.folder)

    def decide(self, who: int, make: Callable[[], Command]) -> None:
        try:
            self.members[who].project.decide(make())
        except RalphdeckError:
            return

    who = st.sampled_from((0, 1, 2))
    some_id = st.sampled_from(IDS)

    @rule(who=who, id=some_id, kind=st.sampled_from((Promote, Deprecate, Reset, Quarantine, Release, Archive, Restore)))
    def decide_on_one(self, who: int, id: str, kind: type[Promote]) -> None:
        self.decide(who, lambda: kind(id, reason="because"))

    @rule(who=who, id=some_id, uses=st.integers(1, 3))
    def snooze(self, who: int, id: str, uses: int) -> None:
        self.decide(who, lambda: Snooze(id, uses=uses))

    @rule(who=who, id=some_id)
    def note(self, who: int, id: str) -> None:
        self.decide(who, lambda: Note(id, text="noted"))

    @rule(who=who)
    def promote_all(self, who: int) -> None:
        self.decide(who, lambda: bulk(Verb.PROMOTE, IDS))

    @rule(who=who)
    def merge(self, who: int) -> None:
        self.decide(who, lambda: Merge(A, B))

    @rule(who=who, id=some_id)
    def invert(self, who: int, id: str) -> None:
        self.decide(who, lambda: AcceptInversion(id))

    @rule(who=who, any_author=st.booleans())
    def undo(self, who: int, any_author: bool) -> None:
        self.decide(who, lambda: Undo(any_author=any_author))

    @rule(who=who)
    def redo(self, who: int) -> None:
        self.decide(who, Redo)

    @rule(who=who, is_online=st.booleans())
    def connect(self, who: int, is_online: bool) -> None:
        self.members[who].is_online = is_online

    @rule(who=who)
    def sync(self, who: int) -> None:
        if self.members[who].is_online:
            self.members[who].sync()

    @rule(who=who, again_from=st.integers(0, 20))
    def pull(self, who: int, again_from: int) -> None:
        if self.members[who].is_online:
            self.members[who].pull(again_from)


Machine.TestCase.settings = settings(max_examples=10, stateful_step_count=15)
TestExchange = pytest.mark.slow(Machine.TestCase)


@pytest.fixture
def _claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take decisions from elsewhere as claims, as in a project outside of the trusted paths."""
    monkeypatch.delenv(TRUSTED_PATHS)


def test_a_decision_that_came_by_git_first_is_confirmed_by_the_space(
    _claims: None, pair: tuple[Member, Member]
) -> None:
    ana, ben = pair
    ana.project.decide(Promote(A, reason="used daily"))
    _copy_log(ana, ben)
    assert ben.ledger.claims()
    assert not ben.ledger.state().pins
    ben.sync()
    assert not ben.ledger.claims()
    assert A in ben.ledger.state().pins


def test_a_forged_line_with_the_id_of_a_decision_of_the_space_is_not_confirmed(
    _claims: None, pair: tuple[Member, Member]
) -> None:
    ana, ben = pair
    ana.project.decide(Note(A, text="see the wiki"))
    _copy_log(ana, ben)
    ben.paths.ledger.write_bytes(ben.paths.ledger.read_bytes().replace(b'"verb":"note"', b'"verb":"promote"'))
    ben.sync()
    assert ben.ledger.claims()
    assert not ben.ledger.state().pins


def test_decisions_from_elsewhere_are_not_sent_to_the_space(_claims: None, pair: tuple[Member, Member]) -> None:
    ana, ben = pair
    outsider = Member(MemorySpace(), ana.paths.project.with_name("outsider"), "eve", Clock())
    outsider.project.decide(Promote(A))
    _copy_log(outsider, ben)
    ben.sync()
    ana.sync()
    assert not ana.ledger.decisions()


def _copy_log(source: Member, target: Member) -> None:
    """Put the log of one working copy into another one, as Git does."""
    target.paths.curation.mkdir(parents=True, exist_ok=True)
    for file in source.paths.curation.glob("ledger.jsonl*"):
        shutil.copy(file, target.paths.curation)
