"""Loop facts around one fixed moment."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

from core.config.settings import WatchSettings
from core.records.loops import Loop
from core.sources.loop_facts import LoopFact
from core.sources.loop_join import join_loops
from core.sources.loops import read_loops

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
UUID = "f314cacf-fe09-49ac-91ed-56d8d456ffcb"
INTERNAL = ".aiwg/ralph"
EXTERNAL = ".aiwg/ralph-external"


class Running:
    """Processes with known starts, which a test may take away."""

    def __init__(self, starts: dict[int, datetime] | None = None) -> None:
        self.starts = starts or {}

    def started_at(self, pid: int) -> datetime | None:
        return self.starts.get(pid)


def ago(**span: float) -> str:
    """A time before `NOW`, as files write it."""
    return (NOW - timedelta(**span)).isoformat()


def facts(file: str, value: Any) -> tuple[LoopFact, ...]:
    """Facts of a decoded file."""
    return read_loops(file, value, NOW)[0]


def internal(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    """An internal loop at work, started ten minutes ago, changed by `state`."""
    state = {"status": "running", "startTime": ago(minutes=10), **state}
    return facts(f"{INTERNAL}/loops/{loop_id}/state.json", state)


def archived(loop_id: str, **state: Any) -> tuple[LoopFact, ...]:
    """An archived internal loop, completed, started three hours ago, changed by `state`."""
    state = {"status": "completed", "startTime": ago(hours=3), **state}
    return facts(f"{INTERNAL}/archive/{loop_id}/state.json", state)


def registry(*entries: dict[str, Any], root: str = INTERNAL) -> tuple[LoopFact, ...]:
    """A registry with these entries."""
    return facts(f"{root}/registry.json", {"active_loops": list(entries)})


def external(loop_id: str, home: str = "loops", **state: Any) -> tuple[LoopFact, ...]:
    """An external loop at work on "do it", started ten minutes ago, changed by `state`."""
    state = {"status": "running", "objective": "do it", "startTime": ago(minutes=10), **state}
    return facts(f"{EXTERNAL}/{home}/{loop_id}/session-state.json", state)


def joined(*parsed: Iterable[LoopFact], processes: Running | None = None) -> dict[str, Loop]:
    """The rows that these facts make at `NOW`."""
    return join_loops([fact for part in parsed for fact in part], NOW, WatchSettings(), processes or Running())


def launcher(pid: int, started: str) -> tuple[LoopFact, ...]:
    """The launcher's registry with one loop, `launched`, at work on "do it"."""
    entry = {
        "pid": pid,
        "objective": "do it",
        "status": "running",
        "startedAt": started,
        "lastUpdate": started,
    }
    return facts(f"{EXTERNAL}/launcher-registry.json", {"loops": {"launched": entry}})


def session(started: str, **state: Any) -> tuple[LoopFact, ...]:
    """The session state at the top of the external tree: loop `UUID` at work on "do it"."""
    state = {"loopId": UUID, "objective": "do it", "status": "running", "startTime": started, **state}
    return facts(f"{EXTERNAL}/session-state.json", state)
