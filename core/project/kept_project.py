"""A project as its index has it, until its files are checked, or for hooks.

See docs/performance.md#opening and docs/architecture.md#freshness. It imports little, because the first rows and each
hook wait for that; what reads or joins files is imported only if something changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

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

SWEEP_AFTER: Final = timedelta(minutes=1)  # since the last sweep, another one is worth its time in the background
_MODEL_SECONDS: Final = 1.5  # the start of the embedding model takes about 0.7


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
        """Return the project as last checked; None without a usable, complete index."""
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
    """State of the last run with its number of questions; the queue of `reviewer`."""

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


def open_quick_state(
    paths: ProjectPaths, settings: Settings, clock: Callable[[], datetime]
) -> tuple[ProjectState, bool]:
    """Return a project's state, and whether to compare all files in the background.

    A project without an index is read as a whole.
    """
    from core.index.anchors import is_check_due

    with suppress(DamagedError, sqlite3.Error, ValueError):
        connection = read_existing(paths.project)
        if connection is not None:
            reader = View(connection, {})
            if reader.meta(COMPLETE) is not None and (state := _open(paths, reader, settings, clock())) is not None:
                swept = parse_time((reader.meta(SWEPT) or b"").decode())
                is_due = swept is None or not timedelta() <= clock() - swept < SWEEP_AFTER
                return state, is_due or is_check_due(state.snapshot)
    return _load(paths, settings, clock), False


def _open(paths: ProjectPaths, reader: View, settings: Settings, now: datetime) -> ProjectState | None:
    """Read changed files; return the view's state, None without scores or texts."""
    from core.index.experiment import find_experiment
    from core.index.scores import load_board
    from core.index.sweep import find_changes
    from core.index.texts import load_texts
    from core.retrieval.embeddings import PATTERNS, TASKS, Embedder, Embeddings

    origins = Origins(paths.project)
    changes = find_changes(paths, reader, origins)
    if any(changes):
        from core.index.refresh import Index

        index = Index(paths, settings, clock=lambda: now)
        snapshot = index.refresh_some(changes)
        assert isinstance(snapshot, IndexedSnapshot)
    else:
        snapshot = IndexedSnapshot(reader, ProjectFiles(paths, origins))
    board = load_board(snapshot, now, settings)
    texts = load_texts(snapshot)
    if board is None or texts is None:
        return None
    state = ProjectState(snapshot, board, texts, (), settings, now, {}, experiment=find_experiment(paths, settings))
    if not any((paths.ralph / subject.file).exists() for subject in (PATTERNS, TASKS)):
        return state
    # An agent waits, and words alone choose nearly as well; a model that another program delays takes many seconds.
    embedder = Embedder(timeout=_MODEL_SECONDS)
    vectors = Embeddings(paths, PATTERNS, embedder), Embeddings(paths, TASKS, embedder)
    return replace(state, embeddings=vectors[0], task_embeddings=vectors[1])


def _load(paths: ProjectPaths, settings: Settings, clock: Callable[[], datetime]) -> ProjectState:
    from core.project.reader import ProjectReader

    return ProjectReader(paths, settings, by="", clock=clock, asks=False).load()
