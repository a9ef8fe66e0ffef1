"""The state of a project for processes that must answer at once, such as hooks: from its index, with a cheap check.

It imports nothing that reads or joins files unless something changed; see docs/architecture.md#freshness.
"""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from core.base.errors import DamagedError
from core.index.anchors import is_check_due
from core.index.database import read_existing
from core.index.experiment import find_experiment
from core.index.project_state import ProjectState
from core.index.records import COMPLETE, SWEPT, View
from core.index.scores import load_board
from core.index.snapshot import IndexedSnapshot, ProjectFiles
from core.index.sweep import find_changes
from core.index.texts import load_texts
from core.records.times import parse_time
from core.retrieval.embeddings import PATTERNS, TASKS, Embedder, Embeddings
from core.trust.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.base.paths import ProjectPaths
    from core.base.settings import Settings

_MODEL_SECONDS: Final = 1.5  # the start of the embedding model takes about 0.7
SWEEP_AFTER: Final = timedelta(minutes=1)  # since the last sweep, another one is worth its time in the background


def open_quick_state(
    paths: ProjectPaths, settings: Settings, clock: Callable[[], datetime]
) -> tuple[ProjectState, bool]:
    """Return the state of a project, and whether all its files should be compared in the background.

    A project without an index is read as a whole.
    """
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
    """Return the state of a view, after files that changed are read; None if it has no scores or texts."""
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
