"""Files of ralph-tui: sessions, the registry of sessions, and logs of iterations with a Markdown header."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.adapters.lessons import lesson_id
from core.adapters.values import MAX_LABEL, MAX_TEXT, cut, lesson_kind
from core.base.regexes import lazy_regex
from core.records.lessons import Lesson
from core.records.loops import Outcome, Usage
from core.records.times import parse_time
from core.sources import normalize
from core.sources.fields import Fields

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles

FOLDER: Final = ".ralph-tui"
SESSION: Final = "session.json"
_PARALLEL: Final = "parallel-session.json"
FILES: Final = (SESSION, "session-meta.json", "ralph.lock", _PARALLEL, "progress.md", "iterations")
REGISTRY: Final = ".config/ralph-tui/sessions.json"
MAX_TASKS: Final = 1000
_SEEN: Final = "sessions"  # key of the last content of each session file, which a new session overwrites
_MAX_SESSIONS: Final = 100
_MAX_KEPT: Final = 100  # iterations of a session that are kept beyond its file
_MAX_FOLDERS: Final = 50
_MAX_LOGS: Final = 2000
_MAX_ENTRIES: Final = 10_000  # of the registry
_PREFIX: Final = 8  # characters of the ID of a session in the name of a log
_MAX_HEAD: Final = 16_384  # bytes of a log that are read
_MAX_LINES: Final = 50  # of each section
_DIVIDER: Final = "--- RAW OUTPUT ---"
_NUMBER: Final = lazy_regex(r"# Iteration (\d{1,9}) Log")
_VALUE: Final = lazy_regex(r"- \*\*([A-Z][\w ]{1,40})\*\*: (.+)")
_DURATION: Final = lazy_regex(r"(\d{1,9})(h|m|s)\b")
_LOG_NAME: Final = lazy_regex(r"([0-9a-f]{8})_\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_")
_MS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000}


class IterationLog(Struct, frozen=True, kw_only=True):
    """What the header of a log contains; `session` is the beginning of the ID of its session, "" in old versions."""

    path: Path
    session: str
    head: str
    number: int | None
    values: dict[str, str]
    sections: dict[str, list[tuple[int, str]]]  # line number and text of bullets, by the title of the section

    @property
    def task_id(self) -> str:
        return self.values.get("Task ID", "")

    @property
    def started_at(self) -> datetime | None:
        return parse_time(self.values.get("Started At"))

    @property
    def ended_at(self) -> datetime | None:
        return parse_time(self.values.get("Ended At"))

    @property
    def duration_ms(self) -> float | None:
        found = _DURATION.findall(self.values.get("Duration", ""))
        return float(sum(int(count) * _MS[unit] for count, unit in found)) if found else None

    @property
    def usage(self) -> Usage:
        return Usage(input=self._tokens("Input Tokens"), output=self._tokens("Output Tokens"))

    @property
    def learnings(self) -> tuple[str, ...]:
        return tuple(text for _, text in self.sections.get("Learnings", ()))

    @property
    def files(self) -> tuple[str, ...]:
        found = (text for _, text in self.sections.get("Files Changed", ()))
        return tuple(file for file in found if not file.startswith("... and "))

    @property
    def work(self) -> str:
        """What was done, and why the iteration ended."""
        done = [text for _, text in self.sections.get("What Was Done", ())]
        return cut("\n".join(filter(None, (*done, self.values.get("Completion Summary", "")))))

    @property
    def is_completed(self) -> bool:
        return self.values.get("Task Completed") == "Yes"

    def lessons(self, runner: str, file: str, loop_id: str) -> Iterator[Lesson]:
        """Yield what the agent wrote as learnings in this iteration."""
        for line, text in self.sections.get("Learnings", ()):
            yield Lesson(
                id=lesson_id(runner, text),
                runner=runner,
                text=text,
                kind=lesson_kind(text),
                file=file,
                line=line,
                title=cut(self.task_id, MAX_LABEL),
                at=self.ended_at,
                loop_id=loop_id,
                outcome=Outcome.SUCCESS if self.is_completed else Outcome.UNKNOWN,
            )

    def _tokens(self, name: str) -> int | None:
        return normalize.count(self.values.get(name, "").replace(",", ""))


def read_log(path: Path, files: RunnerFiles) -> IterationLog | None:
    """Read the header of a log; None if it is not the log of an iteration."""
    head = files.head(path, _MAX_HEAD).decode("utf-8", "replace").partition(_DIVIDER)[0]
    number = _NUMBER.match(head)
    if number is None:
        return None
    values: dict[str, str] = {}
    sections: dict[str, list[tuple[int, str]]] = {}
    bullets: list[tuple[int, str]] = []
    for place, line in enumerate(head.splitlines(), start=1):
        if line.startswith("#"):
            bullets = sections.setdefault(line.lstrip("#").strip(), [])
        elif value := _VALUE.fullmatch(line):
            values.setdefault(value[1], cut(value[2]))
        elif line.startswith(("- ", "* ", "• ")) and len(bullets) < _MAX_LINES and (text := cut(line[2:], MAX_TEXT)):
            bullets.append((place, text))
    name = _LOG_NAME.match(path.name)
    return IterationLog(
        path=path,
        session=name[1] if name else "",
        head=cut(head),
        number=int(number[1]),
        values=values,
        sections=sections,
    )


class Session(Struct, frozen=True, kw_only=True):
    """A session in one folder; `is_past` is set if its file was seen before and exists no more."""

    id: str
    folder: Path  # in which it runs
    fields: Fields
    logs: tuple[IterationLog, ...] = ()
    pid: int | None = None
    locked_at: datetime | None = None
    is_locked: bool = False
    is_past: bool = False


class SessionReader:
    """Finds the sessions of a project; keeps the logs that it read."""

    def __init__(self) -> None:
        self._logs: dict[Path, tuple[datetime | None, IterationLog | None]] = {}

    def read(self, files: RunnerFiles) -> list[Session]:
        """Return the sessions of all folders: those of now, those whose files are gone, and those with logs only."""
        registered = _registered(files)
        named = (Path(cwd) for entry in registered.values() if isinstance(cwd := entry.get("cwd"), str))
        inside = (path for path in named if files.folders.contain(str(path)))
        folders = list(dict.fromkeys((*files.folders.roots, *inside)))[:_MAX_FOLDERS]
        found: dict[str, Session] = {}
        logs: dict[str, list[IterationLog]] = {}
        for folder in folders:
            for session in _current(folder, files):
                found.setdefault(session.id, session)
            for log in self._read_logs(folder, files):
                logs.setdefault(log.session, []).append(log)
        for id, (folder, value) in _seen(found, files).items():
            found.setdefault(id, Session(id=id, folder=folder, fields=Fields("", value, []), is_past=True))
        for id, entry in registered.items():
            folder = Path(str(entry.get("cwd")))
            if folder in folders:
                found.setdefault(id, Session(id=id, folder=folder, fields=Fields("", entry, [])))
        for prefix in logs.keys() - {""} - {id[:_PREFIX] for id in found}:
            folder = logs[prefix][0].path.parents[2]
            found[prefix] = Session(id=prefix, folder=folder, fields=Fields("", {}, []), is_past=True)
        sessions = sorted(found.values(), key=lambda session: session.id)[:_MAX_SESSIONS]
        return [replace(session, logs=_own_logs(session, logs)) for session in sessions]

    def _read_logs(self, folder: Path, files: RunnerFiles) -> Iterator[IterationLog]:
        for path in files.names(folder / FOLDER / "iterations", "*.log")[-_MAX_LOGS:]:
            modified_at = files.modified_at(path)
            known = self._logs.get(path)
            if known is None or known[0] != modified_at:
                known = self._logs[path] = modified_at, read_log(path, files)
            if known[1] is not None:
                yield known[1]


def _current(folder: Path, files: RunnerFiles) -> Iterator[Session]:
    """Yield the session of a folder, and a parallel one that has another ID."""
    lock = mapping(files.json(folder / FOLDER / "ralph.lock"))
    meta = mapping(files.json(folder / FOLDER / "session-meta.json"))
    parallel = mapping(files.json(folder / FOLDER / _PARALLEL))
    for name, value in ((SESSION, mapping(files.json(folder / FOLDER / SESSION))), (_PARALLEL, parallel)):
        id = value.get("sessionId")
        if not isinstance(id, str) or not id.strip():
            continue
        if value is parallel or id == parallel.get("sessionId"):
            value = {**_as_session(parallel), **(value if value is not parallel else {})}
        known = {"endedAt", "cumulativeCost", "prdPath", "epicId"} if meta.get("id") == id else set()
        value = {**{key: one for key, one in meta.items() if key in known}, **value}
        is_locked = bool(lock) and lock.get("sessionId", id) == id
        yield Session(
            id=id,
            folder=folder,
            fields=Fields(files.shown(folder / FOLDER / name), value, []),
            pid=_pid(lock) if is_locked else None,
            locked_at=Fields("", lock, []).time("acquiredAt") if is_locked else None,
            is_locked=is_locked,
        )


def _pid(lock: Mapping[Any, Any]) -> int | None:
    """Return the process that holds a lock, if it runs on this machine."""
    fields = Fields("", dict(lock), [])
    return fields.count("pid") if fields.text("hostname") in ("", socket.gethostname()) else None


def _as_session(parallel: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the state of a parallel session in the fields of other sessions."""
    graph = mapping(parallel.get("taskGraph"))
    nodes = graph.get("nodes")
    pairs = [one for one in (nodes if isinstance(nodes, list) else ()) if isinstance(one, list) and len(one) == 2]
    merged, failed = (set(Fields("", dict(parallel), []).texts(name)) for name in ("mergedTaskIds", "failedTaskIds"))
    tasks = []
    for id, node in pairs[:MAX_TASKS]:
        status = "completed" if id in merged else "failed" if id in failed else "open"
        tasks.append({**mapping(mapping(node).get("task")), "id": id, "status": status})
    state = {"plugin": "", "totalTasks": len(tasks), "tasks": tasks}
    updated_at = parallel.get("lastUpdatedAt")
    known = {"status": "running", "trackerState": state} | ({"updatedAt": updated_at} if updated_at else {})
    return {**{key: one for key, one in parallel.items() if key in ("sessionId", "startedAt")}, **known}


def _registered(files: RunnerFiles) -> dict[str, dict[Any, Any]]:
    """Return the entries of this project in the registry of all sessions, by ID."""
    home = files.folders.home
    registry = mapping(files.json(home / REGISTRY)) if home is not None else {}
    entries = mapping(registry.get("sessions"))
    return {
        id: entry
        for id, entry in list(entries.items())[:_MAX_ENTRIES]
        if isinstance(entry, dict) and isinstance(cwd := entry.get("cwd"), str) and files.folders.contain(cwd)
    }


def _seen(found: Mapping[str, Session], files: RunnerFiles) -> dict[str, tuple[Path, dict[Any, Any]]]:
    """Remember the session files, and return those that were overwritten or deleted since they were seen."""
    known = {id: one for id, one in mapping(files.remembered(_SEEN)).items() if isinstance(one, dict)}
    now = {id: _kept(session) for id, session in found.items()}
    if any(known.get(id) != one for id, one in now.items()):
        files.remember(_SEEN, dict(list({**known, **now}.items())[-_MAX_SESSIONS:]))
    past = {id: one for id, one in known.items() if id not in found and isinstance(one.get("folder"), str)}
    return {
        id: (Path(one["folder"]), mapping(one.get("session")))
        for id, one in past.items()
        if files.folders.contain(one["folder"])
    }


def _kept(session: Session) -> dict[str, Any]:
    value = dict(session.fields.mapping)
    if isinstance(iterations := value.get("iterations"), list):
        value["iterations"] = iterations[-_MAX_KEPT:]
    return {"folder": str(session.folder), "session": value}


def _own_logs(session: Session, logs: Mapping[str, list[IterationLog]]) -> tuple[IterationLog, ...]:
    """Return the logs of a session, in order of time; old versions do not name it, but their times show it."""
    found = [*logs.get(session.id[:_PREFIX], ())]
    started_at = session.fields.time("startedAt")
    if not session.is_past and started_at is not None:
        found += [one for one in logs.get("", ()) if one.started_at is not None and one.started_at >= started_at]
    return tuple(sorted(found, key=lambda log: (log.number or 0, log.path.name)))


def mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}
