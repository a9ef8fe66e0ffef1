"""All records of a project, one collection per field of `Snapshot`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from core.config.settings import WatchSettings
from core.records.findings import Finding
from core.records.snapshot import Snapshot
from core.sources.cross_task_memory import join_memory
from core.sources.debug_sessions import join_sessions
from core.sources.episodes import join_attempts, join_tasks
from core.sources.escalations import join_escalations
from core.sources.liveness import Processes
from core.sources.loop_join import LoopCollection
from core.sources.parsed_file import ParsedFile
from core.sources.record_collections import PatternCollection, RecordCollection, ReflectionCollection


class ProjectRecords:
    """The collections of one project.

    Attributes:
        patterns: Patterns of the registry and copies elsewhere.
        loops: Loops, joined from all files about them.
    """

    def __init__(self) -> None:
        self.patterns = PatternCollection()
        self.loops = LoopCollection()
        self._reflections = ReflectionCollection()
        self._others: dict[str, RecordCollection[Any]] = {
            "memory_tasks": RecordCollection(join_memory),
            "tasks": RecordCollection(join_tasks),
            "attempts": RecordCollection(join_attempts),
            "debug_sessions": RecordCollection(join_sessions),
            "escalations": RecordCollection(join_escalations),
        }
        self._all: dict[str, Any] = {
            "patterns": self.patterns,
            "loops": self.loops,
            "reflections": self._reflections,
            **self._others,
        }

    def replace(self, file: str, before: ParsedFile, after: ParsedFile) -> None:
        """Replace the records of one file."""
        for name, collection in self._all.items():
            records = getattr(after, name)
            if records or getattr(before, name):
                collection.replace(file, records)

    def join(
        self,
        now: datetime,
        settings: WatchSettings,
        processes: Processes,
        *,
        force_liveness: bool = False,
        with_reflections: bool = True,
    ) -> dict[str, frozenset[str]]:
        """Update all collections; returns the changed IDs by collection.

        Args:
            now: The present, UTC.
            settings: Thresholds of liveness.
            processes: Running processes.
            force_liveness: Whether to check running loops even if that was done a moment ago.
            with_reflections: Whether to join reflections, which takes long while a project is loading.
        """
        changed = {"loops": self.loops.join(now, settings, processes, force_liveness=force_liveness)}
        changed["patterns"] = self.patterns.join()
        changed["reflections"] = self._reflections.join(self.loops.aliases) if with_reflections else frozenset()
        return changed | {name: collection.join() for name, collection in self._others.items()}

    def mappings(self, before: Snapshot, changed: Mapping[str, frozenset[str]]) -> dict[str, Mapping[str, Any]]:
        """Read-only mappings by collection for the next snapshot; unchanged ones are those of `before`."""
        return {
            name: MappingProxyType(collection.records) if changed[name] else getattr(before, name)
            for name, collection in self._all.items()
        }

    def findings(self) -> Iterator[Finding]:
        """Findings that only joining several files shows."""
        yield from self.patterns.findings
        yield from self.loops.findings
