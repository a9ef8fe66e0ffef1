"""subsy/ralph-tui: sessions that work through the tasks of a tracker (docs/adapter-files.md#ralph-tui)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from core.adapters.contract import Delivery, Places
from core.adapters.progress_log import progress_lessons, read_progress
from core.adapters.ralph_tui_files import (
    FILES,
    FOLDER,
    MAX_TASKS,
    REGISTRY,
    SESSION,
    IterationLog,
    Session,
    SessionReader,
    mapping,
)
from core.adapters.snarktank import pattern_delivery
from core.adapters.values import MAX_LABEL, cut, head_of, newest
from core.records.debug_sessions import Failure
from core.records.lessons import Lesson
from core.records.loops import Iteration, Liveness, Loop, LoopDetails, LoopStatus, Outcome, Progress, StateSource, Usage
from core.sources.fields import Fields
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.adapters.contract import Folders, Moment
    from core.adapters.runner_files import RunnerFiles

_PROGRESS: Final = "progress.md"
_LEARNED: Final = "lessons"  # key of the lessons of progress logs, which a new session overwrites
_MAX_ITERATIONS: Final = 500
_MAX_LESSONS: Final = 500
_CLOCK_TOLERANCE: Final = timedelta(minutes=1)
_STALE_AFTER: Final = timedelta(minutes=10)
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


class RalphTuiAdapter:
    """Reads session files, iteration logs, the progress log and the registry of sessions."""

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

    def places(self, folders: Folders) -> Places:
        watched = tuple(root / FOLDER / name for root in folders.roots for name in FILES)
        return Places(watched=watched, polled=(folders.home / REGISTRY,) if folders.home else ())

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterator[Loop]:
        for session in self._sessions.read(files):
            yield _loop(session, files, moment)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        session = self._find(loop, files)
        if session is None:
            return LoopDetails(loop_id=loop.id)
        tasks = _tasks(session.fields)
        notes = []
        if tasks:
            notes.append(("Tasks", "\n".join(f"[{_mark(task)}] {_title(task)}" for task in tasks)))
        notes += [(f"Iteration {log.number}", log.head) for log in session.logs[-3:] if log.head]
        facts = [("tracker", session.fields.inside("trackerState"))]
        named = [(label, fields.text("plugin")) for label, fields in facts if fields is not None]
        named += [("skipped tasks", ", ".join(session.fields.texts("skippedTaskIds")))]
        return LoopDetails(
            loop_id=loop.id,
            iterations=tuple(_iterations(session, with_texts=True)),
            notes=tuple((title, cut(text)) for title, text in notes),
            facts=tuple((label, cut(value, MAX_LABEL)) for label, value in named if value),
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


def _learned(files: RunnerFiles) -> Iterator[Lesson]:
    """Yield the lessons that were seen before."""
    known = files.remembered(_LEARNED)
    for one in known if isinstance(known, list) else ():
        try:
            yield msgspec.convert(one, Lesson)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue


def _loop(session: Session, files: RunnerFiles, moment: Moment) -> Loop:
    fields = session.fields
    tracker = fields.inside("trackerState") or Fields("", {}, [])
    iterations = tuple(_iterations(session))
    started_at = fields.time("startedAt") or min(
        (log.started_at for log in session.logs if log.started_at), default=None
    )
    signs = (fields.time("updatedAt"), session.locked_at, *(one.at for one in iterations))
    last = newest(*(time for time in signs if time is not None and time <= moment.now + _CLOCK_TOLERANCE))
    iteration = fields.count("currentIteration")
    progress = _progress(session, tracker)
    loop = Loop(
        id=_id(session),
        runner=RalphTuiAdapter.name,
        sources=(RalphTuiAdapter.name,),
        task=_task(session, tracker, files),
        criteria=tuple(cut(_title(task), MAX_LABEL) for task in _tasks(fields)),
        raw_status=cut(fields.text("status"), MAX_LABEL),
        owner=cut(fields.text("agentPlugin"), MAX_LABEL) or _last_value(session, "Agent"),
        model=cut(fields.text("model"), MAX_LABEL) or _last_value(session, "Model"),
        iteration=iteration if iteration is not None or not iterations else len(iterations),
        max_iterations=fields.count("maxIterations") or None,
        iterations=iterations,
        started_at=started_at,
        updated_at=fields.time("updatedAt"),
        last_activity=last,
        pid=session.pid,
        usage=replace(sum((log.usage for log in session.logs), Usage()), cost_usd=fields.duration("cumulativeCost")),
        cwd=files.folders.cwd_of(session.folder),
        files=_files(session, tracker, files),
        progress=progress,
    )
    return _with_state(loop, session, moment)


def _with_state(loop: Loop, session: Session, moment: Moment) -> Loop:
    """Set status, liveness and end of a loop."""
    status = _STATUSES.get(loop.raw_status, LoopStatus.UNKNOWN)
    source, reason = StateSource.REPORTED, ""
    if status is LoopStatus.RUNNING and session.fields.flag("isPaused"):
        status = LoopStatus.PAUSED
    if session.is_past and not status.ended:
        source = StateSource.WATCHED if loop.raw_status else StateSource.INFERRED
        is_done = loop.progress.stories and not loop.progress.stories_open
        status = LoopStatus.COMPLETED if is_done else LoopStatus.UNKNOWN
        reason = "all tasks are completed" if is_done else "its session file is gone"
    is_over = status.ended or session.is_past
    if is_over and loop.progress.stories_open and loop.max_iterations and (loop.iteration or 0) >= loop.max_iterations:
        status, source, reason = LoopStatus.LIMIT, StateSource.INFERRED, "max iterations"
    liveness, why = check_liveness(
        status, loop.pid, loop.last_activity, loop.modified_at, moment.now, _STALE_AFTER, moment.processes
    )
    badges: tuple[str, ...] = ()
    if liveness is Liveness.DEAD:
        status, reason, badges = LoopStatus.CRASHED, "its process is gone", ("crashed",)
    elif liveness is Liveness.STALE:
        badges = ("stale",)
    ended_at = session.fields.time("endedAt")
    return replace(
        loop,
        status=status,
        state_source=source,
        end_reason=reason or (loop.raw_status if status.ended else ""),
        liveness=liveness,
        liveness_reason=why,
        badges=badges,
        ended_at=(ended_at or loop.last_activity) if status.ended else None,
        ended_approximate=status.ended and ended_at is None,
    )


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
    return [task for _, task in tracker.objects("tasks")][:MAX_TASKS] if tracker is not None else []


def _title(task: Fields) -> str:
    return f"{task.text('id')} {task.text('title')}".strip()


def _mark(task: Fields) -> str:
    return {"completed": "x", "in_progress": "/"}.get(task.text("status"), " ")


def _task(session: Session, tracker: Fields, files: RunnerFiles) -> str:
    """Return the description of the plan, else its name and the tasks."""
    path = _plan(session, tracker)
    plan = Fields("", mapping(files.json(path)) if path is not None else {}, [])
    known = plan.text("description", "project", "name") or tracker.text("epicId") or session.fields.text("epicId")
    return cut(known) or cut("; ".join(task.text("title") for task in _tasks(session.fields)))


def _plan(session: Session, tracker: Fields) -> Path | None:
    name = tracker.text("prdPath") or session.fields.text("prdPath")
    path = session.folder / name
    is_inside = path.is_relative_to(session.folder) and ".." not in path.parts
    return path if name and is_inside else None


def _files(session: Session, tracker: Fields, files: RunnerFiles) -> tuple[str, ...]:
    """Return the files of a session that exist, the one with its state first, then the plan."""
    folder = session.folder / FOLDER
    paths = [folder / SESSION, _plan(session, tracker), folder / _PROGRESS] if not session.is_past else []
    paths += [log.path for log in session.logs[-3:]]
    return tuple(files.shown(path) for path in paths if path is not None and files.exists(path))


def _last_value(session: Session, name: str) -> str:
    return next((value for log in reversed(session.logs) if (value := log.values.get(name))), "")


def _id(session: Session) -> str:
    return f"{RalphTuiAdapter.name}:{cut(session.id, 64)}"
