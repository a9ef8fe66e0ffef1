from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

import core.files.atomic_write
from core.base.errors import Refused, UnknownRecord
from core.base.paths import ProjectPaths
from core.decisions.case import Decided, describe_change
from core.decisions.commands import (
    AcceptInversion,
    Archive,
    CountReports,
    Deprecate,
    DiscardReports,
    Merge,
    Note,
    Promote,
    Quarantine,
    Release,
    Reset,
    Undo,
)
from core.decisions.curator import Curator, Target
from core.decisions.undo import newest_undoable
from core.learning.bursts import Burst
from core.project.project import Project
from core.records.decisions import CurationState, Decision, Verb
from core.records.events import Event, event_id
from core.sources.ledger import verify_ledger
from tests.factories import (
    CURATION_NOW,
    NO_RETRY_SETTINGS,
    decide,
    decide_many,
    decide_question,
    make_assessment,
    make_curator,
    make_error_pattern,
    make_failing_assessment,
    make_inversion,
    make_project,
    read_overrides,
)

IDS = ("pat-error-a-001", "pat-error-b-001", "pat-error-c-001")
A, B, C = (make_error_pattern(key) for key in IDS)


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return make_project(tmp_path, *IDS)


def many(curator: Curator, verb: Verb, ids: Sequence[str] = IDS) -> Decided:
    asked = [Target(make_error_pattern(key), make_assessment()) for key in ids]
    return decide_many(curator, verb, asked, reason="because")


@pytest.mark.parametrize("is_released", [False, True])
def test_the_log_shows_that_an_undo_stops_or_frees_a_text(curator: Curator, is_released: bool) -> None:
    decide(curator, Quarantine, A, reason="doubtful")
    if is_released:
        decide(curator, Release, A, now=CURATION_NOW + timedelta(seconds=1))
    undone = curator.undo(now=CURATION_NOW + timedelta(seconds=2))
    before, after = describe_change(undone.decision).split(" → ")
    assert ("quarantine" in (before, after), after == "quarantine") == (True, is_released)
    assert f"→ {after}" in undone.summary


def test_undo_reverses_a_named_older_decision_alone(curator: Curator, paths: ProjectPaths) -> None:
    first = decide(curator, Promote, A)
    decide(curator, Deprecate, B, reason="hides the cause")
    decide(curator, Note, A, text="nothing rests on a note, nor a note on anything")
    taken = curator.undo(now=CURATION_NOW, decision_id=first.decision.id)
    assert taken.summary == f"Undone: promote {A.id} (→ established)"
    assert read_overrides(paths).keys() == curator.ledger.state().pins.keys() == {B.id}
    assert curator.redo(now=CURATION_NOW).decision.subject == first.decision.id
    assert read_overrides(paths).keys() == {A.id, B.id}
    assert curator.undo(now=CURATION_NOW).decision.subject == first.decision.id  # what was repeated last goes first
    assert curator.undo(now=CURATION_NOW).summary == f"Undone: note {A.id}"


def test_undo_refuses_a_decision_that_a_later_one_rests_on(curator: Curator) -> None:
    first = decide(curator, Promote, A)
    later = decide(curator, Deprecate, A, reason="hides the cause")
    refusal = f"depends on it: deprecate {A.id} by alice on 3 May 2026; undo that first: {later.decision.id}"
    with pytest.raises(Refused, match=refusal):
        curator.undo(now=CURATION_NOW, decision_id=first.decision.id)
    curator.undo(now=CURATION_NOW, decision_id=later.decision.id)
    curator.undo(now=CURATION_NOW, decision_id=first.decision.id)
    with pytest.raises(Refused, match="already undone"):
        curator.undo(now=CURATION_NOW, decision_id=first.decision.id)


def test_undo_accepts_a_decision_or_its_group(curator: Curator, paths: ProjectPaths) -> None:
    group = many(curator, Verb.PROMOTE)
    curator.undo(now=CURATION_NOW, decision_id=group.decisions[1].id)
    assert read_overrides(paths).keys() == {A.id, C.id}
    assert curator.undo(now=CURATION_NOW, decision_id=group.decision.group).summary == "Undone: promote 2 patterns"
    assert read_overrides(paths) == {}
    assert curator.redo(now=CURATION_NOW).summary == "Redone: promote 2 patterns"
    assert curator.redo(now=CURATION_NOW).decision.subject == group.decisions[1].id
    assert read_overrides(paths).keys() == {*IDS}


def test_undo_refuses_ids_that_are_not_decisions(curator: Curator) -> None:
    decide(curator, Promote, A)
    undone = curator.undo(now=CURATION_NOW)
    with pytest.raises(Refused, match="itself an undo"):
        curator.undo(now=CURATION_NOW, decision_id=undone.decision.id)
    with pytest.raises(UnknownRecord, match="no decision 2026"):
        curator.undo(now=CURATION_NOW, decision_id="2026")


def stored(paths: ProjectPaths) -> dict[str, Any]:
    """All records of all pattern files, by id; a file that holds none is as good as no file."""
    found: dict[str, Any] = {}
    for path in sorted([*paths.patterns.glob("*.json"), *paths.archive.glob("*.json")]):
        for records in json.loads(path.read_bytes())["pattern_registry"].values():
            found |= {f"{path.name} {record['pattern_id']}": record for record in records}
    return found


def acts(paths: ProjectPaths, curator: Curator, moment: Callable[[], Any]) -> dict[str, Callable[[int], Decided]]:
    """Everything that can be done, by name; on one of the patterns, or on a decision counted from the end."""
    here = [key for key in IDS if f"error-patterns.json {key}" in stored(paths)]

    def named(number: int) -> Decided:
        decisions = curator.ledger.decisions()
        name = decisions[-1 - number % len(decisions)] if decisions else None
        return curator.undo(now=moment(), decision_id=(name.group or name.id) if name else "none")

    def pattern(number: int) -> Any:
        if not here:
            raise UnknownRecord("all of them are archived")
        return make_error_pattern(here[number % len(here)])

    def every(verb: Verb) -> Decided:
        return many(curator, verb, here)

    good = make_assessment()
    return {
        "promote": lambda n: decide(curator, Promote, pattern(n), good, now=moment()),
        "deprecate": lambda n: decide(curator, Deprecate, pattern(n), good, now=moment(), reason="x"),
        "reset": lambda n: decide(curator, Reset, pattern(n), good, now=moment()),
        "quarantine": lambda n: decide(curator, Quarantine, pattern(n), good, now=moment(), reason="x"),
        "release": lambda n: decide(curator, Release, pattern(n), good, now=moment()),
        "invert": lambda n: decide(
            curator,
            AcceptInversion,
            pattern(n),
            make_failing_assessment(),
            proposal=make_inversion(pattern(n).id),
            now=moment(),
        ),
        "archive": lambda n: decide(curator, Archive, pattern(n), good, now=moment(), reason="old"),
        "promote all": lambda n: every(Verb.PROMOTE),
        "archive all": lambda n: every(Verb.ARCHIVE),
        "undo": lambda n: curator.undo(now=moment()),
        "redo": lambda n: curator.redo(now=moment()),
        "undo this": named,
    }


_NAMES = st.sampled_from(
    [
        *("promote", "deprecate", "reset", "quarantine", "release", "invert", "archive", "promote all", "archive all"),
        *("undo", "redo", "undo this"),
    ]
)


@pytest.mark.slow
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(done=st.lists(st.tuples(_NAMES, st.integers(0, 5)), max_size=12))
def test_undoing_everything_restores_the_initial_files(
    done: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_CHECK_SECONDS", ())
    monkeypatch.setattr(os, "fsync", lambda _handle: None)
    paths = make_project(tmp_path_factory.mktemp("project"), *IDS)
    curator, now = make_curator(paths), CURATION_NOW
    before = stored(paths)

    def moment() -> Any:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    for name, number in done:
        try:
            assert acts(paths, curator, moment)[name](number).written
        except (Refused, UnknownRecord):
            continue
        pins = {key: pin.decision_id for key, pin in curator.ledger.state().pins.items()}
        assert {key: value["decision"] for key, value in read_overrides(paths).items()}.items() <= pins.items()
    while curator.ledger.state().undoable:
        assert curator.undo(now=moment()).written
    assert stored(paths) == before
    state = curator.ledger.state()
    assert replace(state, undone=frozenset(), redoable=(), acts={}) == CurationState(do_claims_count=True)
    assert verify_ledger(paths).problems == ()


def test_undoing_a_merge_preserves_later_uses_of_each_pattern(tmp_path: Path) -> None:
    now = CURATION_NOW

    def clock() -> datetime:
        nonlocal now
        now += timedelta(seconds=1)
        return now

    paths = make_project(tmp_path, *IDS[:2])
    open_project = Project(paths, NO_RETRY_SETTINGS, by="alice", clock=clock, cache=False)
    open_project.load()

    def use(pattern_id: str, loop_id: str) -> None:
        at = clock()
        open_project.record(
            Event(id=event_id(at), at=at, kind="applied", pattern_id=pattern_id, loop_id=loop_id, success=True)
        )

    def counts() -> list[int]:
        uses = [record["usage_count"] for record in stored(paths).values() if "archived" not in record]
        assert uses == [open_project.view.assessment(key).uses for key in IDS[: len(uses)]]
        return uses

    use(A.id, "one")
    use(B.id, "two")
    assert counts() == [4, 4]
    merged = open_project.decide(Merge(A.id, B.id))
    use(A.id, "three")
    assert counts() == [9]
    use(B.id, "four")  # by the name that it had
    taken = open_project.decide(Undo(decision_id=merged.decision.id))
    assert (taken.written, taken.warnings) == (True, ())
    use(A.id, "five")
    use(B.id, "six")
    assert counts() == [6, 6]
    assert len(stored(paths)) == 2


@pytest.mark.parametrize(
    ("undoable", "newest"),
    [(("a", "b"), "b"), (("a", "x"), "a"), (("b", "a", "x", "y"), "a"), (("x", "y"), "y")],
)
def test_unattended_extractions_are_not_undone_before_decisions_of_a_person(
    undoable: tuple[str, ...], newest: str
) -> None:
    decisions = [
        *(Decision(id=id, at=CURATION_NOW, verb=Verb.PROMOTE, subject="p", by="ana") for id in "ab"),
        *(
            Decision(id=id, at=CURATION_NOW, verb=Verb.EXTRACT, subject="l", by="ana", after={"hashes": {}})
            for id in "xy"
        ),
    ]
    assert newest_undoable(CurationState(undoable=undoable), decisions).id == newest


PAIR = ("pat-error-a-001", "pat-error-b-001")
BURST = Burst(source="ralph-x", first=CURATION_NOW, last=CURATION_NOW, patterns=PAIR, never_given=2)
some_id = st.sampled_from(PAIR)


class Machine(RuleBasedStateMachine):
    """Two curators take turns on two patterns and a burst. The model is a stack of whole states."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.paths = make_project(self.folder, *PAIR)
        self.start = self.paths.pattern_file("error").read_bytes()
        self.curators = [make_curator(self.paths, name) for name in ("alice", "bob")]
        self.now = CURATION_NOW
        self.held: dict[str, str] = {}
        self.undo_stack: list[dict[str, str]] = []
        self.redo_stack: list[dict[str, str]] = []

    def teardown(self) -> None:
        for _ in range(len(self.undo_stack)):
            self.curators[0].undo(now=self.now, any_author=True)
        with pytest.raises(Refused):
            self.curators[0].undo(now=self.now, any_author=True)
        assert self.paths.pattern_file("error").read_bytes() == self.start
        state = self.curators[1].ledger.state()
        assert (state.pins, state.bursts) == ({}, {})
        shutil.rmtree(self.folder)

    def decide(self, pattern_id: str, allowed: bool, state: str | None, make: Callable[[], Decided]) -> None:
        self.now += timedelta(seconds=1)
        if not allowed:
            with pytest.raises(Refused):
                make()
            return
        assert make().written
        self.undo_stack.append(dict(self.held))
        self.redo_stack.clear()
        if state is None:
            del self.held[pattern_id]
        else:
            self.held[pattern_id] = state

    @rule(pattern_id=some_id, who=st.sampled_from((0, 1)))
    def promote(self, pattern_id: str, who: int) -> None:
        self.decide(
            pattern_id,
            pattern_id not in self.held,
            "proven",
            lambda: decide(self.curators[who], Promote, make_error_pattern(pattern_id), now=self.now),
        )

    @rule(pattern_id=some_id, who=st.sampled_from((0, 1)))
    def deprecate(self, pattern_id: str, who: int) -> None:
        self.decide(
            pattern_id,
            self.held.get(pattern_id) != "deprecated",
            "deprecated",
            lambda: decide(self.curators[who], Deprecate, make_error_pattern(pattern_id), now=self.now, reason="x"),
        )

    @rule(pattern_id=some_id, who=st.sampled_from((0, 1)))
    def reset(self, pattern_id: str, who: int) -> None:
        self.decide(
            pattern_id,
            pattern_id in self.held,
            None,
            lambda: decide(self.curators[who], Reset, make_error_pattern(pattern_id), now=self.now),
        )

    @rule(revoked=st.booleans(), who=st.sampled_from((0, 1)))
    def judge_burst(self, revoked: bool, who: int) -> None:
        judge = DiscardReports if revoked else CountReports
        command = judge(source=BURST.source, burst=BURST)
        self.decide(
            BURST.source,
            BURST.source not in self.held,
            "revoked" if revoked else "confirmed",
            lambda: decide_question(self.curators[who], command, now=self.now),
        )

    @rule(who=st.sampled_from((0, 1)))
    def undo(self, who: int) -> None:
        if not self.undo_stack:
            with pytest.raises(Refused):
                self.curators[who].undo(now=self.now, any_author=True)
            return
        assert self.curators[who].undo(now=self.now, any_author=True).written
        self.redo_stack.append(self.held)
        self.held = self.undo_stack.pop()

    @rule(who=st.sampled_from((0, 1)))
    def redo(self, who: int) -> None:
        if not self.redo_stack:
            with pytest.raises(Refused):
                self.curators[who].redo(now=self.now)
            return
        assert self.curators[who].redo(now=self.now).written
        self.undo_stack.append(self.held)
        self.held = self.redo_stack.pop()

    @invariant()
    def all_agree(self) -> None:
        for curator in self.curators:
            state = curator.ledger.state()
            pins = state.pins
            verdicts = {source: judged[-1].verdict for source, judged in state.bursts.items()}
            assert {key: pin.state.value for key, pin in pins.items()} | verdicts == self.held
        written = read_overrides(self.paths)
        assert {key: value["decision"] for key, value in written.items()} == {
            key: pin.decision_id for key, pin in pins.items()
        }


Machine.TestCase.settings = settings(max_examples=15, stateful_step_count=20)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_CHECK_SECONDS", ())
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


TestUndo = Machine.TestCase
