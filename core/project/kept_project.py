"""A project as its index has it, shown until the files are checked; see docs/performance.md#opening.

Its modules import little, because the first rows wait for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec

from core.base.errors import DamagedError
from core.base.steps import run_all
from core.index.database import read_existing
from core.index.evidence import open_inputs
from core.index.records import Reader
from core.index.snapshot import COMPLETE, QUESTIONS, SWEPT, IndexedSnapshot, ProjectFiles
from core.learning.outcomes import Outcome, OutcomeSignals, score_signals
from core.records.times import parse_time
from core.state.project_state import ProjectState
from core.trust.origins import Origins

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.config.settings import Settings
    from core.index.texts import Texts
    from core.learning.evidence import LoopPatterns
    from core.learning.evidence_inputs import EvidenceInputs
    from core.learning.scoreboard import Scoreboard
    from core.records.episodes import Attempt
    from core.records.loops import Loop, LoopDetails
    from core.state.review_items import ReviewItem

_MADE: Final = frozenset(one.name for one in fields(ProjectState))


class KeptProject:
    """The part of a project that lists need; it writes and decides nothing."""

    is_readonly = False

    def __init__(self, project: ProjectPaths, view: ProjectState, by: str, clock: Callable[[], datetime]) -> None:
        self.project = project
        self.view = view
        self.by = by
        self.now = clock

    @classmethod
    def open(cls, project: ProjectPaths, settings: Settings, by: str, clock: Callable[[], datetime]) -> Self | None:
        """Return the project as it was when it was last checked; None if there is no usable index of all of it."""
        connection = read_existing(project.project)
        if connection is None:
            return None
        reader = Reader(connection, {})
        with suppress(sqlite3.Error, DamagedError, ValueError):
            as_of = parse_time((reader.meta(SWEPT) or b"").decode())
            if as_of is not None and reader.meta(COMPLETE) is not None:
                files = ProjectFiles(project, Origins(project.project))
                return cls(
                    project, KeptProjectState.of(IndexedSnapshot(reader, files, as_of), settings, clock()), by, clock
                )
        connection.close()
        return None

    def story(self, loop_id: str) -> LoopDetails:
        """Read the details of one loop from disk; raises UnknownRecord."""
        from core.sources.loop_details import read_loop_details

        loop = self.view.loop(loop_id)
        if not loop.runner:
            return read_loop_details(self.project, loop)
        from core.project.adapter_feed import open_collector

        return open_collector(self.project, self.view.settings, self.now).details(loop)


class KeptProjectState(ProjectState):
    """State of the last run; scores, questions and indexes are made when they are first used."""

    __slots__ = ("_inputs", "_kept", "_reader")
    _reader: Reader
    _kept: tuple[int, bool]  # number of questions, and whether the searches for them had ended
    _inputs: EvidenceInputs

    @classmethod
    def of(cls, snapshot: IndexedSnapshot, settings: Settings, now: datetime) -> Self:
        made = cls.__new__(cls)
        questions = snapshot.reader.meta(QUESTIONS)
        values = {
            "snapshot": snapshot,
            "settings": settings,
            "now": now,
            "offers": {},
            "earlier_count": 0,
            "_kept": msgspec.msgpack.decode(questions, type=tuple[int, bool]) if questions else (0, False),
            "embeddings": None,
            "task_embeddings": None,
            "_inputs": open_inputs(snapshot.reader, snapshot, settings.learning),
            "_reader": snapshot.reader,
        }
        for name, value in values.items():
            object.__setattr__(made, name, value)
        return made

    def __getattr__(self, name: str) -> Any:
        """Make a field that has no value yet."""
        if name not in _MADE:
            raise AttributeError(name)
        makers: dict[str, Callable[[], Any]] = {
            "board": self._restore_board,
            "queue": self._restore_queue,
            "texts": partial(_make_texts, self),
        }
        value = makers[name]()
        object.__setattr__(self, name, value)
        return value

    @property
    def pending_count(self) -> int:
        return self._kept[0]

    @property
    def is_count_open(self) -> bool:
        return not self._kept[1]

    @property
    def evidence(self) -> object:
        return self._inputs  # without the scores, which the first rows do not need

    def outcome(self, work_id: str) -> tuple[OutcomeSignals, Outcome] | None:
        return score_signals(self._inputs.shown_signals(work_id), self.now, self.settings.learning)

    def attempts_of(self, loop: Loop) -> list[Attempt]:
        return self._inputs.names.attempts_of(loop)

    def loop_patterns(self, loop_id: str) -> LoopPatterns:
        return self._inputs.loop_patterns(loop_id)

    def _restore_board(self) -> Scoreboard:
        from core.index.scores import load_board
        from core.learning.scoreboard import Scoreboard

        board = load_board(self._reader, self.snapshot, self.now, self.settings)
        return board or Scoreboard.build(self.snapshot, self.now, self.settings)

    def _restore_queue(self) -> tuple[ReviewItem, ...]:
        """Return the questions; if the searches had not ended, those that need none."""
        from core.index.verdicts import ViewVerdicts
        from core.review.question_search import PACKAGES, read_found, verdict_settings
        from core.review.queue import NOTHING_FOUND, ask_in_steps

        snapshot, now, settings = self.snapshot, self.now, self.settings
        stored = ViewVerdicts(self._reader, PACKAGES, verdict_settings(settings))
        verdict = read_found(stored, snapshot, now, settings, self.task_embeddings)
        found = verdict.whole if verdict is not None else NOTHING_FOUND
        return run_all(ask_in_steps(snapshot, self.board, now, settings, found))


def _make_texts(state: KeptProjectState) -> Texts:
    """Return the indexes of texts; imports more than the first rows need."""
    from core.index.texts import Texts, load_texts

    return load_texts(state._reader, state.snapshot) or Texts(state.snapshot, board=state.board)
