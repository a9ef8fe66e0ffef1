"""A project as its index has it, shown until the files are checked; see docs/performance.md#opening.

Its modules import little, because the first rows wait for them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Self

import msgspec

from core.base.errors import DamagedError
from core.index.database import read_existing
from core.index.project_state import ProjectState
from core.index.records import COMPLETE, QUESTIONS, SWEPT, View
from core.index.snapshot import IndexedSnapshot, ProjectFiles
from core.records.times import parse_time
from core.trust.origins import Origins

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths
    from core.base.settings import Settings
    from core.index.review_items import ReviewItem
    from core.records.loops import LoopDetails
    from core.records.snapshot import Snapshot


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
        reader = View(connection, {})
        with suppress(sqlite3.Error, DamagedError, ValueError):
            as_of = parse_time((reader.meta(SWEPT) or b"").decode())
            if as_of is not None and reader.meta(COMPLETE) is not None:
                files = ProjectFiles(project, Origins(project.project))
                view = KeptProjectState.open(IndexedSnapshot(reader, files, as_of), settings, clock(), by)
                return cls(project, view, by, clock)
        return None

    def story(self, loop_id: str) -> LoopDetails:
        """Read the details of one loop from disk; raises UnknownRecord."""
        from core.project.adapter_files import AdapterFiles

        return AdapterFiles(self.project, self.view.settings, self.now).details(self.view.loop(loop_id))


class KeptProjectState(ProjectState):
    """State of the last run, with the number of its questions; its queue is that of `reviewer`."""

    __slots__ = ("_count", "_is_final", "_reviewer")
    _count: int
    _is_final: bool  # whether the searches for questions had ended
    _reviewer: str

    @classmethod
    def open(cls, snapshot: Snapshot, settings: Settings, now: datetime, reviewer: str = "") -> Self:
        assert isinstance(snapshot, IndexedSnapshot)
        state = super().open(snapshot, settings, now)
        questions = snapshot.reader.meta(QUESTIONS)
        count, is_final = msgspec.msgpack.decode(questions, type=tuple[int, bool]) if questions else (0, False)
        object.__setattr__(state, "_count", count)
        object.__setattr__(state, "_is_final", is_final)
        object.__setattr__(state, "_reviewer", reviewer)
        return state

    @property
    def pending_count(self) -> int:
        return self._count

    @property
    def is_count_open(self) -> bool:
        return not self._is_final

    @property
    def evidence(self) -> object:
        return self.inputs  # without the scores, which the first rows do not need

    def _make_queue(self) -> tuple[ReviewItem, ...]:
        """Return the questions; if the searches had not ended, those that need none."""
        from core.index.verdicts import ViewVerdicts
        from core.questions.asking import NOTHING_FOUND, QueueRecords
        from core.questions.queue import review_queue
        from core.questions.search import ROOMS, read_found, verdict_settings

        snapshot, now, settings = self.snapshot, self.now, self.settings
        assert isinstance(snapshot, IndexedSnapshot)
        stored = ViewVerdicts(snapshot.reader, ROOMS, verdict_settings(settings))
        verdict = read_found(stored, snapshot, now, settings, self.task_embeddings)
        found = verdict.whole if verdict is not None else NOTHING_FOUND
        return review_queue(QueueRecords.of(snapshot, self.board, now, settings, found, self._reviewer))
