"""Running processes and background jobs of Claude Code (docs/adapter-files.md#claude)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.claude_transcript import MAX_TASK
from core.adapters.values import clip
from core.records.times import parse_time
from core.sources.liveness import ALWAYS, MAX_PID

if TYPE_CHECKING:
    from core.adapters.contract import Moment
    from core.adapters.runner_files import RunnerFiles

_TOLERANCE: Final = timedelta(seconds=5)


class Process(Struct, frozen=True, kw_only=True, gc=False):
    """A process of the agent, from its registry, which it leaves at a normal end."""

    session_id: str
    pid: int
    status: str = ""
    waits_for: str = ""
    has_ended: bool = False
    job_id: str = ""


class Job(Struct, frozen=True, kw_only=True, gc=False):
    """A background job of the agent."""

    id: str
    session_id: str
    state: str
    path: Path
    needs: str = ""
    intent: str = ""
    cwd: str = ""


def read_processes(files: RunnerFiles, moment: Moment) -> Iterator[Process]:
    """Yield the processes of sessions in the agent's registry."""
    home = files.folders.private("CLAUDE_CONFIG_DIR", ".claude")
    for path in files.names(home / "sessions", "*.json") if home else ():
        found = files.json(path)
        if not isinstance(found, dict):
            continue
        pid, session_id = found.get("pid"), found.get("sessionId")
        if type(pid) is not int or not 0 < pid <= MAX_PID or not isinstance(session_id, str):
            continue
        started = moment.processes.started_at(pid)
        texts = {name: one for name, one in found.items() if isinstance(one, str)}
        yield Process(
            session_id=session_id,
            pid=pid,
            status=clip(texts.get("status", ""), 40),
            waits_for=clip(texts.get("waitingFor", ""), 200),
            has_ended=started is None or not _is_same(started, found),
            job_id=texts.get("jobId", ""),
        )


def _is_same(started: datetime, entry: Mapping[str, Any]) -> bool:
    """Return whether a process is that of an entry, or a later one with the same pid."""
    start = entry.get("procStart")
    if isinstance(start, str) and start[:20].isdecimal():
        start = int(start[:20]) if len(start) > 11 else None  # else clock ticks
    expected = parse_time(start)
    if started == ALWAYS:
        return True
    if expected is not None:
        return abs(started - expected) <= _TOLERANCE
    registered = parse_time(entry.get("startedAt"))
    return registered is None or started <= registered + _TOLERANCE


def read_jobs(files: RunnerFiles, processes: Mapping[str, Process]) -> Iterator[Job]:
    """Yield the background jobs; nothing but `state.json` is opened in their folders."""
    home = files.folders.private("CLAUDE_CONFIG_DIR", ".claude")
    sessions = {one.job_id: one.session_id for one in processes.values() if one.job_id}
    for folder in files.names(home / "jobs") if home else ():
        path = folder / "state.json"
        found = files.json(path) if files.exists(path) else None
        if not isinstance(found, dict):
            continue
        texts = {name: one for name, one in found.items() if isinstance(one, str)}
        yield Job(
            id=folder.name,
            session_id=texts.get("sessionId") or sessions.get(folder.name) or f"job-{folder.name}",
            state=clip(texts.get("state", ""), 40),
            needs=clip(texts.get("needs", ""), 200),
            intent=clip(texts.get("intent", ""), MAX_TASK),
            cwd=texts.get("cwd", ""),
            path=path,
        )
