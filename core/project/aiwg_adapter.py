"""The records in `.aiwg` as an adapter: the loops that the index of the project reads by itself."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from core.adapters.contract import Delivery, Folders, Moment, Places
from core.sources.loop_details import read_loop_details

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles
    from core.config.paths import ProjectPaths
    from core.project.index import Library
    from core.records.lessons import Lesson
    from core.records.loops import Loop, LoopDetails


class AiwgAdapter:
    """Offers the project's own loops by the contract of adapters; the index watches and reads the files."""

    name = "aiwg"
    title = ".aiwg"
    versions = "all"
    contains = "iterations, results, learnings, errors, patterns, process, outcome"
    lacks = "tokens (only if analytics report them)"

    def __init__(self, paths: ProjectPaths, library: Library) -> None:
        self._paths, self._library = paths, library

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        found = (folder for folder in self._folders() if folder.is_dir())
        return tuple(folder.relative_to(self._paths.project).as_posix() for folder in found)

    def places(self, folders: Folders) -> Places:
        return Places(watched=self._folders())

    def loops(self, files: RunnerFiles | None = None, moment: Moment | None = None) -> Iterable[Loop]:
        """Return the loops of the newest snapshot."""
        return (loop for loop in self._library.snapshot.loops.values() if not loop.runner)

    def details(self, loop: Loop, files: RunnerFiles | None = None) -> LoopDetails:
        return read_loop_details(self._paths, loop)

    def lessons(self, files: RunnerFiles | None = None) -> Iterable[Lesson]:
        """Return nothing: what these loops learned are reflections."""
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles | None = None) -> Delivery | None:
        """Return None: hooks and `ralphdeck loop inject` deliver."""
        return None

    def _folders(self) -> tuple[Path, ...]:
        return self._paths.ralph, self._paths.external
