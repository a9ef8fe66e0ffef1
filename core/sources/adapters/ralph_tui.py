"""subsy/ralph-tui: sessions on tracker tasks; docs/adapter-files.md#ralph-tui."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource, Usage
from core.records.reflections import Lesson
from core.records.times import newest, parse_time
from core.sources import normalize
from core.sources.adapters.lessons import make_lesson, progress_lessons, read_progress
from core.sources.adapters.runner_files import MAX_LABEL, cut, fields_of, head_of
from core.sources.adapters.runs import RunnerAdapter, State
from core.sources.adapters.snarktank import pattern_delivery
from core.sources.liveness import check_liveness
from core.sources.normalize import Fields

if TYPE_CHECKING:
    from core.sources.adapters.contract import Delivery, Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

FOLDER: Final = ".ralph-tui"
SESSION: Final = "session.json"
_PARALLEL: Final = "parallel-session.json"
FILES: Final = (SESSION, "session-meta.json", "ralph.lock", _PARALLEL, "progress.md", "iterations")
REGISTRY: Final = ".config/ralph-tui/sessions.json"
_MAX_TASKS: Final = 1000
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
_PROGRESS: Final = "progress.md"
_LEARNED: Final = "lessons"  # key of the lessons of progress logs, which a new session overwrites
_MAX_ITERATIONS: Final = 500
_MAX_LESSONS: Final = 500
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_STATUSES: Final = {
    "running": LoopStatus.RUNNING,
    "paused": LoopStatus.PAUSED,
    "completed": LoopStatus.COMPLETED,
    "failed": LoopStatus.FAILED,
    "interrupted": LoopStatus.ABORTED,
}
_OUTCOMES: Final = {
    "completed": Outcome.SUCCESS,
    "failed": Outcome.FAILURE,
    "interrupted": Outcome.PARTIAL,
    "skipped": Outcome.SKIPPED,
}


class IterationLog(Struct, frozen=True, kw_only=True):
    """Header of a log; `session` is the start of a session's ID, "" in old versions."""

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
            yield make_lesson(
                runner,
                text,
                file,
                line,
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
        elif line.startswith(("- ", "* ", "• ")) and len(bullets) < _MAX_LINES and (text := cut(line[2:])):
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
    """A session in one folder; `is_past` means that its file was seen but is gone."""

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
        """Return sessions of all folders: current ones, past ones, those with logs only."""
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
            found.setdefault(id, Session(id=id, folder=folder, fields=fields_of(value), is_past=True))
        for id, entry in registered.items():
            folder = Path(str(entry.get("cwd")))
            if folder in folders:
                found.setdefault(id, Session(id=id, folder=folder, fields=fields_of(entry)))
        for prefix in logs.keys() - {""} - {id[:_PREFIX] for id in found}:
            folder = logs[prefix][0].path.parents[2]
            found[prefix] = Session(id=prefix, folder=folder, fields=fields_of(None), is_past=True)
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
    lock = _mapping(files.json(folder / FOLDER / "ralph.lock"))
    meta = _mapping(files.json(folder / FOLDER / "session-meta.json"))
    parallel = _mapping(files.json(folder / FOLDER / _PARALLEL))
    for name, value in ((SESSION, _mapping(files.json(folder / FOLDER / SESSION))), (_PARALLEL, parallel)):
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
            locked_at=fields_of(lock).time("acquiredAt") if is_locked else None,
            is_locked=is_locked,
        )


def _pid(lock: Mapping[Any, Any]) -> int | None:
    """Return the process that holds a lock, if it runs on this machine."""
    fields = fields_of(lock)
    return fields.count("pid") if fields.text("hostname") in ("", socket.gethostname()) else None


def _as_session(parallel: Mapping[Any, Any]) -> dict[Any, Any]:
    """Return the state of a parallel session in the fields of other sessions."""
    graph = _mapping(parallel.get("taskGraph"))
    nodes = graph.get("nodes")
    pairs = [one for one in (nodes if isinstance(nodes, list) else ()) if isinstance(one, list) and len(one) == 2]
    merged, failed = (set(fields_of(parallel).texts(name)) for name in ("mergedTaskIds", "failedTaskIds"))
    tasks = []
    for id, node in pairs[:_MAX_TASKS]:
        status = "completed" if id in merged else "failed" if id in failed else "open"
        tasks.append({**_mapping(_mapping(node).get("task")), "id": id, "status": status})
    state = {"plugin": "", "totalTasks": len(tasks), "tasks": tasks}
    updated_at = parallel.get("lastUpdatedAt")
    known = {"status": "running", "trackerState": state} | ({"updatedAt": updated_at} if updated_at else {})
    return {**{key: one for key, one in parallel.items() if key in ("sessionId", "startedAt")}, **known}


def _registered(files: RunnerFiles) -> dict[str, dict[Any, Any]]:
    """Return the entries of this project in the registry of all sessions, by ID."""
    home = files.folders.home
    registry = _mapping(files.json(home / REGISTRY)) if home is not None else {}
    entries = _mapping(registry.get("sessions"))
    return {
        id: entry
        for id, entry in list(entries.items())[:_MAX_ENTRIES]
        if isinstance(entry, dict) and isinstance(cwd := entry.get("cwd"), str) and files.folders.contain(cwd)
    }


def _seen(found: Mapping[str, Session], files: RunnerFiles) -> dict[str, tuple[Path, dict[Any, Any]]]:
    """Remember the session files; return those overwritten or deleted since seen."""
    known = {id: one for id, one in _mapping(files.remembered(_SEEN)).items() if isinstance(one, dict)}
    now = {id: _kept(session) for id, session in found.items()}
    if any(known.get(id) != one for id, one in now.items()):
        files.remember(_SEEN, dict(list({**known, **now}.items())[-_MAX_SESSIONS:]))
    past = {id: one for id, one in known.items() if id not in found and isinstance(one.get("folder"), str)}
    return {
        id: (Path(one["folder"]), _mapping(one.get("session")))
        for id, one in past.items()
        if files.folders.contain(one["folder"])
    }


def _kept(session: Session) -> dict[str, Any]:
    value = dict(session.fields.mapping)
    if isinstance(iterations := value.get("iterations"), list):
        value["iterations"] = iterations[-_MAX_KEPT:]
    return {"folder": str(session.folder), "session": value}


def _own_logs(session: Session, logs: Mapping[str, list[IterationLog]]) -> tuple[IterationLog, ...]:
    """Return a session's logs by number; in old versions, their times assign them."""
    found = [*logs.get(session.id[:_PREFIX], ())]
    started_at = session.fields.time("startedAt")
    if not session.is_past and started_at is not None:
        found += [one for one in logs.get("", ()) if one.started_at is not None and one.started_at >= started_at]
    return tuple(sorted(found, key=lambda log: (log.number or 0, log.path.name)))


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


class RalphTuiAdapter(RunnerAdapter):
    """Reads session files, iteration and progress logs, and the session registry."""

    name = "ralph-tui"
    title = "ralph-tui"
    versions = "0.6 to 0.12"
    contains = "sessions, iterations with results and errors, tokens, tasks, lessons, process"
    lacks = "IDs of the agent's sessions; cost only as the runner estimates it"

    def __init__(self) -> None:
        self._sessions = SessionReader()

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        found = tuple(f"{FOLDER}/{name}" for name in FILES if (folders.project / FOLDER / name).exists())
        home = folders.home
        if (
            found
            or home is None
            or json.dumps(str(folders.project))[:-1].encode() not in head_of(home / REGISTRY, home)
        ):
            return found
        return (f"~/{REGISTRY}",)

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for session in self._sessions.read(files):
            yield self._loop(session, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        session = self._find(loop, files)
        if session is None:
            return LoopDetails(loop_id=loop.id)
        tasks = "\n".join(f"[{_mark(task)}] {_title(task)}" for task in _tasks(session.fields))
        tracker = session.fields.inside("trackerState")
        return self.make_details(
            loop,
            (("Tasks", cut(tasks)), *((f"Iteration {log.number}", log.head) for log in session.logs[-3:])),
            (
                ("tracker", tracker.text("plugin") if tracker is not None else ""),
                ("skipped tasks", ", ".join(session.fields.texts("skippedTaskIds"))),
            ),
            iterations=tuple(_iterations(session, with_texts=True)),
        )

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        known: dict[str, Lesson] = {}
        for session in self._sessions.read(files):
            path = session.folder / FOLDER / _PROGRESS
            if not session.is_past and session.fields.file:
                log = read_progress(files.text(path).rpartition("\n")[0])  # the last line may be torn
                for lesson in progress_lessons(self.name, log, files.shown(path), _id(session)):
                    known.setdefault(lesson.id, lesson)
            for one in session.logs:
                for lesson in one.lessons(self.name, files.shown(one.path), _id(session)):
                    known.setdefault(lesson.id, lesson)
        replaced = {lesson.loop_id for lesson in known.values() if lesson.file.endswith(_PROGRESS)}
        for lesson in _learned(files):  # those of a log that a new session emptied; edits of the same session count
            if lesson.loop_id not in replaced or not lesson.file.endswith(_PROGRESS):
                known.setdefault(lesson.id, lesson)
        lessons = list(known.values())[:_MAX_LESSONS]
        kept = msgspec.to_builtins(lessons, builtin_types=(datetime,))
        if kept != files.remembered(_LEARNED):
            files.remember(_LEARNED, kept)
        yield from lessons

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        session = self._find(loop, files)
        if session is None or session.is_past:
            return None
        return pattern_delivery(session.folder / FOLDER / _PROGRESS, context, files)

    def _find(self, loop: Loop, files: RunnerFiles) -> Session | None:
        return next((session for session in self._sessions.read(files) if _id(session) == loop.id), None)

    def _loop(self, session: Session, files: RunnerFiles, moment: Moment) -> Loop:
        fields = session.fields
        tracker = fields.inside("trackerState") or fields_of(None)
        iterations = tuple(_iterations(session))
        signs = (fields.time("updatedAt"), session.locked_at, *(one.at for one in iterations))
        last = newest(*(time for time in signs if time is not None and time <= moment.now + _CLOCK_TOLERANCE))
        iteration = fields.count("currentIteration")
        iteration = iteration if iteration is not None or not iterations else len(iterations)
        begun = [log.started_at for log in session.logs if log.started_at]
        usage = sum((log.usage for log in session.logs), Usage())
        progress = _progress(session, tracker)
        ended = fields.time("endedAt")
        return self.make_loop(
            _id(session),
            session.folder,
            _state(session, progress, iteration, last, moment),
            files,
            moment,
            written=_files(session, tracker),
            last=last,
            ended=ended or last,
            is_exact=ended is not None,
            task=_task(session, tracker, files),
            criteria=tuple(cut(_title(task), MAX_LABEL) for task in _tasks(fields)),
            raw_status=cut(fields.text("status"), MAX_LABEL),
            owner=cut(fields.text("agentPlugin"), MAX_LABEL) or _last_value(session, "Agent"),
            model=cut(fields.text("model"), MAX_LABEL) or _last_value(session, "Model"),
            iteration=iteration,
            max_iterations=fields.count("maxIterations") or None,
            iterations=iterations,
            started_at=fields.time("startedAt") or min(begun, default=None),
            updated_at=fields.time("updatedAt"),
            modified_at=None,
            usage=replace(usage, cost_usd=fields.duration("cumulativeCost")),
            progress=progress,
        )


def _state(session: Session, progress: Progress, iteration: int | None, last: datetime | None, moment: Moment) -> State:
    word, most = cut(session.fields.text("status"), MAX_LABEL), session.fields.count("maxIterations")
    status, source, reason = _STATUSES.get(word, LoopStatus.UNKNOWN), StateSource.REPORTED, ""
    if status is LoopStatus.RUNNING and session.fields.flag("isPaused"):
        status = LoopStatus.PAUSED
    is_over = status.ended or session.is_past
    if session.is_past and not status.ended:
        source = StateSource.WATCHED if word else StateSource.INFERRED
        is_done = progress.stories and not progress.stories_open
        status = LoopStatus.COMPLETED if is_done else LoopStatus.UNKNOWN
        reason = "all tasks are completed" if is_done else "its session file is gone"
    if is_over and progress.stories_open and most and (iteration or 0) >= most:
        status, source, reason = LoopStatus.LIMIT, StateSource.INFERRED, "max iterations"
    liveness, why = check_liveness(status, session.pid, last, None, moment)
    if liveness is Liveness.DEAD:
        status, reason = LoopStatus.CRASHED, "its process is gone"
    return State(status, reason or (word if status.ended else ""), liveness, why, source, session.pid)


def _learned(files: RunnerFiles) -> Iterator[Lesson]:
    """Yield the lessons that were seen before."""
    known = files.remembered(_LEARNED)
    for one in known if isinstance(known, list) else ():
        try:
            yield msgspec.convert(one, Lesson)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue


def _progress(session: Session, tracker: Fields) -> Progress:
    tasks = [task for task in _tasks(session.fields) if task.text("status") != "cancelled"]
    total = len(tasks) or tracker.count("totalTasks")
    done = sum(task.text("status") == "completed" for task in tasks)
    completed = session.fields.count("tasksCompleted")
    changed = {file for log in session.logs for file in log.files}
    ends = [log.ended_at for log in session.logs if log.is_completed]
    ends += [one.time("endedAt") for _, one in session.fields.objects("iterations") if one.flag("taskCompleted")]
    return Progress(
        stories=total or None,
        stories_done=(done if tasks else completed) if total else None,
        files_changed=len(changed) or None,
        is_claimed=session.fields.text("status") == "completed",
        changed_at=newest(*ends),
    )


def _iterations(session: Session, *, with_texts: bool = False) -> Iterator[Iteration]:
    """Yield the iterations of the session file, else those of the logs."""
    logs = {(log.number, log.task_id): log for log in session.logs}
    recorded = [one for _, one in session.fields.objects("iterations")][-_MAX_ITERATIONS:]
    for one in recorded:
        log = logs.get((one.count("iteration"), one.text("taskId")))
        yield _iteration(one, log, with_texts=with_texts)
    if not recorded:
        for log in session.logs[-_MAX_ITERATIONS:]:
            value = {"iteration": log.number, "status": log.values.get("Status"), "error": log.values.get("Error")}
            named = {"taskId": log.task_id, "taskTitle": log.values.get("Task Title")}
            yield _iteration(Fields("", {**value, **named}, []), log, with_texts=with_texts)


def _iteration(one: Fields, log: IterationLog | None, *, with_texts: bool) -> Iteration:
    duration = one.duration("durationMs")
    error = cut(one.text("error"))
    is_read = log is not None and with_texts
    return Iteration(
        number=one.count("iteration"),
        at=one.time("endedAt") or (log.ended_at if log else None) or one.time("startedAt"),
        action=cut(f"{one.text('taskId')} {one.text('taskTitle')}", MAX_LABEL),
        result=log.work if log is not None and is_read else "",
        outcome=_OUTCOMES.get(one.text("status"), Outcome.UNKNOWN),
        learnings=log.learnings if log is not None and is_read else (),
        duration_ms=duration if duration is not None or log is None else log.duration_ms,
        files=log.files if log is not None else (),
        failures=(Failure(message=error),) if error else (),
    )


def _tasks(fields: Fields) -> list[Fields]:
    tracker = fields.inside("trackerState")
    return [task for _, task in tracker.objects("tasks")][:_MAX_TASKS] if tracker is not None else []


def _title(task: Fields) -> str:
    return f"{task.text('id')} {task.text('title')}".strip()


def _mark(task: Fields) -> str:
    return {"completed": "x", "in_progress": "/"}.get(task.text("status"), " ")


def _task(session: Session, tracker: Fields, files: RunnerFiles) -> str:
    """Return the description of the plan, else its name and the tasks."""
    path = _plan(session, tracker)
    plan = Fields("", _mapping(files.json(path)) if path is not None else {}, [])
    known = plan.text("description", "project", "name") or tracker.text("epicId") or session.fields.text("epicId")
    return cut(known) or cut("; ".join(task.text("title") for task in _tasks(session.fields)))


def _plan(session: Session, tracker: Fields) -> Path | None:
    name = tracker.text("prdPath") or session.fields.text("prdPath")
    path = session.folder / name
    is_inside = path.is_relative_to(session.folder) and ".." not in path.parts
    return path if name and is_inside else None


def _files(session: Session, tracker: Fields) -> list[Path]:
    """Return the files of a session, the one with its state first, then the plan."""
    folder = session.folder / FOLDER
    paths = [folder / SESSION, _plan(session, tracker), folder / _PROGRESS] if not session.is_past else []
    return [path for path in (*paths, *(log.path for log in session.logs[-3:])) if path is not None]


def _last_value(session: Session, name: str) -> str:
    return next((value for log in reversed(session.logs) if (value := log.values.get(name))), "")


def _id(session: Session) -> str:
    return f"{RalphTuiAdapter.name}:{cut(session.id, 64)}"
