"""Run the demo without a user interface, and count the changes it detects."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from core.base.errors import RalphdeckError
from core.base.settings import Settings
from core.cli.demo.player import DemoPlayer, scratch_project
from core.files.watcher import FileChanges, Watcher, WatchMode
from core.index.refresh import Index
from core.records.findings import Severity

_INTERVAL: Final = 0.05
now: Final = partial(datetime.now, UTC)


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Result of a headless demo: records at its end, and records that changed."""

    loops: int
    patterns: int
    reflections: int
    findings: int
    changes: int  # Number of file change batches that changed at least one record.
    changed_loops: int
    changed_patterns: int
    watch: WatchMode  # How the watcher detected file changes.


def demo_check(seconds: float = 2.0) -> DemoReport:
    """Play the demo in a temporary folder for `seconds`, and count the changes.

    Raises RalphdeckError if no change was detected or if the sample contains errors.
    """
    never = threading.Event()
    changes = 0
    changed_loops: set[str] = set()
    changed_patterns: set[str] = set()

    def apply_changes(changed: FileChanges) -> None:
        nonlocal changes
        _, delta = index.refresh(None if changed.sweep else changed.paths)
        watcher.retry(index.retry_paths)
        changes += bool(delta)
        changed_loops.update(delta.loops)
        changed_patterns.update(delta.patterns)

    with scratch_project(now()) as project, closing(Index(project, Settings(), clock=now, is_kept=False)) as index:
        index.load()
        watcher = Watcher(project, Settings().watch, apply_changes)
        with watcher, DemoPlayer(project, interval=_INTERVAL):
            never.wait(seconds)
            watch = watcher.state.mode
        snapshot = index.snapshot
    if not changed_loops:
        raise RalphdeckError(f"the demo played for {seconds:g} s, but no change was detected")
    errors = [finding for finding in snapshot.findings if finding.severity is Severity.ERROR]
    if errors:
        raise RalphdeckError(f"the sample project contains an error: {errors[0].file}: {errors[0].message}")
    return DemoReport(
        loops=len(snapshot.loops),
        patterns=len(snapshot.patterns),
        reflections=len(snapshot.reflections),
        findings=len(snapshot.findings),
        changes=changes,
        changed_loops=len(changed_loops),
        changed_patterns=len(changed_patterns),
        watch=watch,
    )
