"""Any sequence of decisions, undone and redone: the ledger, a simple model and the files agree."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import core.files.atomic_write
from core.base.errors import Refused
from core.decisions.case import Decided
from core.decisions.commands import CountReports, Deprecate, DiscardReports, Promote, Reset
from core.learning.bursts import Burst
from tests.factories import (
    CURATION_NOW,
    decide,
    decide_question,
    make_assessment,
    make_curator,
    make_error_pattern,
    make_project,
    read_overrides,
)

IDS = ("pat-error-a-001", "pat-error-b-001")
BURST = Burst(source="ralph-x", first=CURATION_NOW, last=CURATION_NOW, patterns=IDS, never_given=2)
some_id = st.sampled_from(IDS)


class Machine(RuleBasedStateMachine):
    """Two curators take turns on two patterns and a burst. The model is a stack of whole states."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.paths = make_project(self.folder, *IDS)
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
            lambda: decide(
                self.curators[who], Promote, make_error_pattern(pattern_id), make_assessment(), now=self.now
            ),
        )

    @rule(pattern_id=some_id, who=st.sampled_from((0, 1)))
    def deprecate(self, pattern_id: str, who: int) -> None:
        self.decide(
            pattern_id,
            self.held.get(pattern_id) != "deprecated",
            "deprecated",
            lambda: decide(
                self.curators[who],
                Deprecate,
                make_error_pattern(pattern_id),
                make_assessment(),
                now=self.now,
                reason="x",
            ),
        )

    @rule(pattern_id=some_id, who=st.sampled_from((0, 1)))
    def reset(self, pattern_id: str, who: int) -> None:
        self.decide(
            pattern_id,
            pattern_id in self.held,
            None,
            lambda: decide(self.curators[who], Reset, make_error_pattern(pattern_id), make_assessment(), now=self.now),
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


Machine.TestCase.settings = settings(max_examples=25, stateful_step_count=20)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.files.atomic_write, "_CHECK_SECONDS", ())
    monkeypatch.setattr(os, "fsync", lambda _handle: None)


TestUndo = Machine.TestCase
