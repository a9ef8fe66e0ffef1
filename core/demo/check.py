"""The demo without a screen: does everything from the sample to the watched change work here?"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from core.base.errors import RalphdeckError
from core.config.settings import Settings
from core.demo.player import DemoPlayer, scratch_project
from core.project.index import Library
from core.records.findings import Severity
from core.storage.watcher import Changes, Watcher, WatchMode

_INTERVAL: Final = 0.05


@dataclass(frozen=True, slots=True)
class DemoReport:
    """What a headless demo saw.

    Attributes:
        loops, patterns, reflections: How many there were at the end.
        findings: How many things were wrong in the files.
        changes: Batches that changed anything known.
        changed_loops, changed_patterns: How many different ones changed.
        watch: How changes were noticed.
    """

    loops: int
    patterns: int
    reflections: int
    findings: int
    changes: int
    changed_loops: int
    changed_patterns: int
    watch: WatchMode


def demo_check(seconds: float = 2.0) -> DemoReport:
    """Play the demo for so long and watch it, without a screen; nothing is left on the disk.

    Raises:
        RalphdeckError: No change was noticed, or the sample cannot be read as it should.
    """
    enough = threading.Event()
    changes = 0
    changed_loops: set[str] = set()
    changed_patterns: set[str] = set()

    def take(changed: Changes) -> None:
        nonlocal changes
        _, delta = library.apply(None if changed.sweep else changed.paths)
        watcher.retry(library.retry_paths)
        changes += bool(delta)
        changed_loops.update(delta.loops)
        changed_patterns.update(delta.patterns)

    with scratch_project(_now()) as project:
        library = Library(project, Settings(), clock=_now, cache=False)
        library.load()
        watcher = Watcher(project, Settings().watch, take)
        with watcher, DemoPlayer(project, interval=_INTERVAL):
            enough.wait(seconds)
            watch = watcher.state.mode
        snapshot = library.snapshot
    if not changed_loops:
        raise RalphdeckError(f"the demo played for {seconds:g} s, but no change was noticed")
    wrong = [finding for finding in snapshot.findings if finding.severity is Severity.ERROR]
    if wrong:
        raise RalphdeckError(f"the sample is broken: {wrong[0].file}: {wrong[0].message}")
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


def _now() -> datetime:
    return datetime.now(UTC)
