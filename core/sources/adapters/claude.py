"""Adapter of Claude Code (docs/adapter-files.md#claude).

Goals, schedules, background jobs, subagents and headless loops. Their states follow from transcripts
(`claude_transcript`), the registry of processes, and jobs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.records.loops import (
    END_OF_TURN,
    ENDED_ITS_TURN,
    Iteration,
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Progress,
    StateSource,
    Usage,
)
from core.records.times import minute_of, parse_time
from core.sources.adapters.agent_files import project_slug
from core.sources.adapters.beads import closed_issues
from core.sources.adapters.claude_session import first_line, iteration_of
from core.sources.adapters.claude_transcript import MAX_TASK, STOP_BLOCK_CAP, SessionFold
from core.sources.adapters.join import INTERACTIVE
from core.sources.adapters.runner_files import Folded
from core.sources.adapters.sessions import FRESH, BareLoops, SessionAdapter
from core.sources.liveness import ALWAYS, MAX_PID

if TYPE_CHECKING:
    from core.records.reflections import Lesson
    from core.sources.adapters.claude_session import Session, Turn
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

_TOLERANCE: Final = timedelta(seconds=5)
SUBAGENTS: Final = "subagents"  # folder
OVER_AFTER: Final = timedelta(minutes=10)  # since its last record, it does not
_CLOCK_TOLERANCE: Final = timedelta(seconds=60)
_REPORTED: Final = StateSource.REPORTED
_INFERRED: Final = StateSource.INFERRED
_FINAL_ERRORS: Final = frozenset(
    {"authentication_failed", "billing_error", "context_overflow", "invalid_request", "oauth_org_not_allowed"}
)
"""Errors after which a session does not go on by itself, and its goal is cleared."""
_GOAL_ENDS: Final = {
    "met": LoopStatus.COMPLETED,
    "failed": LoopStatus.FAILED,
    "cleared": LoopStatus.ABORTED,
}
_JOB_STATES: Final = {
    "working": LoopStatus.RUNNING,
    "blocked": LoopStatus.WAITING,
    "done": LoopStatus.COMPLETED,
    "stopped": LoopStatus.ABORTED,
}
_NATURAL_ENDS: Final = frozenset({"end_turn", "stop_sequence"})
_AT_REST: Final = ("answer", "turn-end")


class Process(Struct, frozen=True, kw_only=True, gc=False):
    """A process from the agent's registry; it removes its file at a normal end."""

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


class Signs(Struct, frozen=True, gc=False):
    """What is known about a session besides its transcript.

    `is_registered` if the agent registers its processes, `helped_at` is the last activity of its subagents, `ended_pid`
    the process that ended without leaving the registry, as after a kill.
    """

    now: datetime
    process: Process | None = None
    job: Job | None = None
    is_registered: bool = False
    helped_at: datetime | None = None
    ended_pid: int | None = None


class _State(Struct, frozen=True, gc=False):
    status: LoopStatus
    source: StateSource
    word: str  # in the agent's own word
    reason: str = ""  # why it ended, in the agent's own word
    waits_for: str = ""
    question: str = ""


def build_loop(path: Path, shown: str, folded: Folded, signs: Signs) -> Loop:
    """Return a session, or a subagent's, as a loop."""
    session: Session = folded.state
    modified_at = folded.stamp.modified_at
    last = _last_activity(session, modified_at, signs.now)
    last = max(last, signs.helped_at) if signs.helped_at is not None else last
    age = signs.now - last
    state = decide(session, age, signs, is_complete=folded.is_complete)
    liveness, why = _liveness(state, signs, age, last)
    is_over = state.status.ended or liveness is Liveness.ENDED
    goal = session.goal
    ended_at = (parse_time(goal.at) if goal is not None and state.reason == goal.state else None) or last
    is_subagent = path.parent.name == SUBAGENTS or path.stem.startswith("agent-")
    parent = session.forked_from
    if is_subagent:
        parent = path.parent.parent.name if path.parent.name == SUBAGENTS else session.session_id
    return Loop(
        id=f"claude:{path.stem}",
        sources=("claude",),
        runner="claude",
        owner="claude",
        task=session.task or (signs.job.intent if signs.job else ""),
        criteria=(goal.condition,) if goal is not None else (),
        status=state.status,
        raw_status=state.word,
        state_source=state.source,
        end_reason=clip(state.reason, 200),
        tags=tuple(_tags(session, signs, is_subagent)),
        badges=tuple(_badges(state.status, liveness)),
        iteration=session.iteration or None,
        started_at=parse_time(session.started),
        ended_at=ended_at if is_over else None,
        ended_approximate=is_over and (goal is None or state.reason != goal.state),
        updated_at=last,
        last_activity=last,
        modified_at=modified_at,
        liveness=liveness,
        liveness_reason=why,
        pid=signs.process.pid if signs.process else None,
        question=clip(state.question, 200),
        last_result=first_line(goal.reason if goal is not None and goal.reason else session.last_text),
        files=(shown,),
        model=session.model,
        usage=_usage(session),
        parent=f"claude:{parent}" if parent else "",
        session_ids=(path.stem,),
        cwd=session.cwd,
        progress=_progress(session),
    )


def build_job(job: Job, shown: str, modified_at: datetime | None) -> Loop:
    """Return a background job without a transcript as a loop."""
    status = _JOB_STATES.get(job.state, LoopStatus.UNKNOWN)
    return Loop(
        id=f"claude:job-{job.id}",
        sources=("claude",),
        runner="claude",
        owner="claude",
        task=job.intent,
        status=status,
        raw_status=job.state,
        tags=("job",),
        end_reason=job.state if status.ended else "",
        ended_at=modified_at if status.ended else None,
        ended_approximate=status.ended,
        last_activity=modified_at,
        modified_at=modified_at,
        liveness=Liveness.ENDED if status.ended else Liveness.UNKNOWN,
        liveness_reason="no transcript was found",
        question=job.needs if status is LoopStatus.WAITING else "",
        files=(shown,),
    )


def decide(session: Session, age: timedelta, signs: Signs, *, is_complete: bool = True) -> _State:
    """Return the state of a session whose last record is this old."""
    process, goal = signs.process, session.goal
    if not is_complete and process is None:
        return _State(LoopStatus.UNKNOWN, _INFERRED, "not read to its end")
    is_open = process is not None or (age <= OVER_AFTER and signs.ended_pid is None)
    if waiting := _waits(session, signs, is_open=is_open):
        return waiting
    works = session.phase in ("prompt", "work")
    if goal is not None and goal.state in _GOAL_ENDS and not (works and is_open and session.last > goal.at):
        return _State(_GOAL_ENDS[goal.state], _REPORTED, goal.state, goal.state)
    if ended := _ended(session, signs, is_open=is_open):
        return ended
    is_armed = goal is not None and goal.state == "armed"
    if process is not None:
        if is_armed or process.status == "busy" or (works and process.status != "idle"):
            return _State(LoopStatus.RUNNING, _REPORTED, process.status or session.phase)
        if _is_scheduled(session, signs.now):
            return _State(LoopStatus.RUNNING, _REPORTED, "scheduled")
        return _State(LoopStatus.PAUSED, _REPORTED, "idle")
    if signs.ended_pid is not None and (is_armed or works):
        return _State(LoopStatus.CRASHED, _REPORTED, "armed" if is_armed else session.phase)
    if age <= FRESH and (is_armed or works or _is_scheduled(session, signs.now)):
        return _State(LoopStatus.RUNNING, _INFERRED, "armed" if is_armed else session.phase)
    if is_armed:
        is_dead = age > OVER_AFTER
        return _State(LoopStatus.CRASHED if is_dead else LoopStatus.UNKNOWN, _INFERRED, "armed")
    if session.phase not in _AT_REST:
        return _State(LoopStatus.UNKNOWN, _INFERRED, session.phase)
    word = session.stop_reason
    if word in _NATURAL_ENDS and (session.is_headless or session.is_sidechain):
        return _State(LoopStatus.COMPLETED, _REPORTED, word, word)
    if word in _NATURAL_ENDS and not is_open:  # else the person may go on
        return _State(LoopStatus.COMPLETED, _INFERRED, word, word)
    return _State(LoopStatus.UNKNOWN, _INFERRED, session.phase, "" if word in _NATURAL_ENDS else word)


def _is_scheduled(session: Session, now: datetime) -> bool:
    """Return whether the session goes on by itself at a later time."""
    at = session.wakeup
    wakes_at = parse_time(int(at) if at.isdecimal() else at)
    return bool(session.crons) or (wakes_at is not None and wakes_at > now - OVER_AFTER)


def _waits(session: Session, signs: Signs, *, is_open: bool) -> _State | None:
    """Return the state if a person, or a rate limit, is waited for."""
    process, job = signs.process, signs.job
    if job is not None and job.state == "blocked":
        return _State(LoopStatus.WAITING, _REPORTED, job.state, waits_for="a person", question=job.needs)
    if process is not None and (process.waits_for or process.status in ("waiting", "blocked")):
        waits_for = process.waits_for or "a person"
        return _State(LoopStatus.WAITING, _REPORTED, process.status, waits_for=waits_for, question=session.pending)
    if session.question and (is_open or not signs.is_registered):
        word = session.question
        return _State(LoopStatus.WAITING, _REPORTED, word, waits_for="an answer", question=session.pending)
    if session.phase == "limit" and is_open:
        return _State(LoopStatus.WAITING, _REPORTED, session.error, waits_for="the end of a rate limit")
    if process is not None and process.status == "idle" and session.calls and session.phase == "work":
        word, call = process.status, session.pending
        return _State(LoopStatus.WAITING, _INFERRED, word, waits_for="a permission", question=call)
    return None


def _ended(session: Session, signs: Signs, *, is_open: bool) -> _State | None:
    """Return the state if session, job or result ended without an end of the goal."""
    job, result = signs.job, session.result
    if job is not None and job.state in _JOB_STATES and (job.state != "working" or is_open):
        status = _JOB_STATES[job.state]
        return _State(status, _REPORTED, job.state, job.state if status.ended else "")
    if result:
        is_limit = result.startswith("error_max_")
        status = LoopStatus.LIMIT if is_limit else LoopStatus.FAILED
        return _State(LoopStatus.COMPLETED if result == "success" else status, _REPORTED, result, result)
    if session.phase == "interrupted":
        return _State(LoopStatus.ABORTED, _REPORTED, "interrupted", "interrupted")
    if session.phase == "limit":
        return _State(LoopStatus.LIMIT, _INFERRED, session.error, session.error)
    if session.phase == "api-error" and (session.error in _FINAL_ERRORS or not is_open):
        return _State(LoopStatus.FAILED, _INFERRED, session.error, session.error)
    if session.blocks >= STOP_BLOCK_CAP and session.phase in _AT_REST:
        return _State(LoopStatus.LIMIT, _INFERRED, "stop hook block cap", "stop hook block cap")
    return None


def _last_activity(session: Session, modified_at: datetime, now: datetime) -> datetime:
    """Return the newest time that is not in the future."""
    last = parse_time(session.last)
    return last if last is not None and last <= now + _CLOCK_TOLERANCE else min(modified_at, now)


def _liveness(state: _State, signs: Signs, age: timedelta, last: datetime) -> tuple[Liveness, str]:
    process = signs.process
    since = f"last record {minute_of(last)} UTC"
    status = state.status
    waits = f"waits for {state.waits_for}; " if state.waits_for else ""
    if status is LoopStatus.CRASHED and signs.ended_pid is not None:
        return Liveness.DEAD, f"process {signs.ended_pid} is gone; {since}"
    if status is LoopStatus.CRASHED:
        return Liveness.DEAD, f"its goal is not reached, and no process is known; {since}"
    if status.ended:
        how = ENDED_ITS_TURN if state.reason in END_OF_TURN else state.reason
        return Liveness.ENDED, f"{how}; {since}"
    if process is not None:
        runs = f"{waits}process {process.pid} runs"
        return (Liveness.IDLE if status is LoopStatus.PAUSED else Liveness.ALIVE), runs
    if age <= OVER_AFTER:
        return Liveness.FRESH, f"{waits}{since}, no known process"
    if status is LoopStatus.UNKNOWN:
        return Liveness.ENDED, f"no known process; {since}; how it ended is not recorded"
    return Liveness.STALE, f"{waits}{since}, no known process"


def _tags(session: Session, signs: Signs, is_subagent: bool) -> list[str]:
    tags = {
        "goal": session.goal is not None,
        "headless": session.is_headless,
        INTERACTIVE: not session.is_headless and not is_subagent,
        "job": signs.job is not None,
        "schedule": bool(session.crons or session.wakeup),
        "subagent": is_subagent,
    }
    return [tag for tag, applies in tags.items() if applies]


def _badges(status: LoopStatus, liveness: Liveness) -> list[str]:
    badges = {"crashed": status is LoopStatus.CRASHED, "stale": liveness is Liveness.STALE}
    return [badge for badge, applies in badges.items() if applies]


def _usage(session: Session) -> Usage:
    if session.totals is None:
        return Usage(cost_usd=session.cost)
    given, output, read, written = session.totals
    return Usage(input=given, output=output, cache_read=read, cache_write=written, cost_usd=session.cost)


def _progress(session: Session) -> Progress:
    goal = session.goal
    is_judged = goal is not None and (goal.iterations or goal.state in ("met", "failed"))
    has_task = goal is not None or session.is_headless  # a person may have asked a question
    return Progress(
        test_passed=session.test_passed,
        files_changed=session.change_count or (0 if has_task and not session.can_change else None),
        goal_met=goal.state == "met" if goal is not None and is_judged else None,
        changed_at=parse_time(session.changed_at),
    )


_MAX_SLUG: Final = 200  # longer ones are cut, and end with a hash
_CWD: Final = lazy_regex(rb'"cwd": ?("[^"\\\x00-\x1f\x7f-\xff]{1,4000}")')  # a path that needs no decoding


class _Entry(Struct, gc=False):
    """A transcript, and the loop that was built from it."""

    path: Path
    folded: Folded
    started: datetime | None
    is_over: bool = False
    loop: Loop | None = None


class ClaudeAdapter(SessionAdapter):
    """Reads sessions, goals, schedules, jobs and memories of Claude Code."""

    name = "claude"
    title = "Claude Code"
    versions = "2.0 to 2.1"
    contains = "turns, goals with the judge's reasons, tool errors and their fixes, test runs, tokens, memories"
    lacks = "cost (only if reported), the end of a session without a goal"
    fold = SessionFold()

    def __init__(self) -> None:
        self._entries: dict[Path, _Entry] = {}
        self._bare = BareLoops()
        self._now: datetime | None = None
        self._is_registered = False

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        projects = _projects(folders)
        found = [projects / project_slug(root) for root in folders.roots[:5]] if projects else []
        return tuple(str(folder) for folder in found if _is_folder(folder))

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        self._now = moment.now
        registered = [*read_processes(files, moment)]
        processes = {one.session_id: one for one in registered if not one.has_ended}
        ended = {one.session_id: one.pid for one in registered if one.has_ended and one.session_id not in processes}
        jobs = {one.session_id: one for one in read_jobs(files, processes)}
        is_registered = bool(processes)
        has_changed, self._is_registered = is_registered != self._is_registered, is_registered
        entries: dict[Path, _Entry] = {}
        helped: dict[str, datetime] = {}  # sessions whose subagents work, and their last activity
        for path in _transcripts(files):
            entry = self._entry(files, path)
            if entry is None:
                continue
            entries[path] = entry
            name = path.stem
            process, job, helped_at = processes.get(name), jobs.get(name), helped.get(name)
            if entry.loop is None or not entry.is_over or process or job or helped_at or has_changed:
                signs = Signs(
                    moment.now,
                    process,
                    job,
                    is_registered=is_registered,
                    helped_at=helped_at,
                    ended_pid=ended.get(name),
                )
                entry.loop = build_loop(path, files.shown(path), entry.folded, signs)
                last = entry.loop.last_activity or moment.now
                entry.is_over = not process and not job and moment.now - last > OVER_AFTER
                if not entry.is_over and entry.loop.parent and path.parent.name == SUBAGENTS:
                    parent = path.parent.parent.name
                    helped[parent] = max(last, helped.get(parent, last))
        self._entries = entries
        yield from self._bare.join((entry.loop for entry in entries.values() if entry.loop is not None), moment.now)
        known = {path.stem for path in entries}
        for job in jobs.values():  # those without a transcript
            if job.session_id not in known and job.cwd and files.folders.contain(job.cwd):
                yield build_job(job, files.shown(job.path), files.modified_at(job.path))

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        names = loop.session_ids or (loop.id.removeprefix("claude:"),)
        paths = [entry.path for entry in self._entries.values() if entry.path.stem in names]
        known = {path.stem for path in paths}
        if not known.issuperset(names):
            paths += [path for path in _transcripts(files) if path.stem in names and path.stem not in known]
        found = [folded.state for path in paths if (folded := files.fold(path, self.fold)) is not None]
        sessions: list[Session] = sorted(found, key=lambda one: one.started)
        if len(names) > 1:
            iterations = tuple(replace(_whole(one), number=number) for number, one in enumerate(sessions, start=1))
        else:
            iterations = tuple(iteration_of(turn) for one in sessions for turn in _turns(one))
        return LoopDetails(
            loop_id=loop.id,
            iterations=iterations,
            notes=tuple(note for one in sessions[-1:] for note in self.notes(one)),
            facts=(
                *dict(fact for one in sessions for fact in self.facts(one)).items(),
                *closed_issues(files, names),
            ),
        )

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        from core.sources.adapters.memories import read_memories  # not needed for lists of loops

        return read_memories(files, self._now)

    def notes(self, session: Session) -> Iterator[tuple[str, str]]:
        for goal in (*session.goals, *((session.goal,) if session.goal else ())):
            yield f"goal, {goal.state}", "\n".join(filter(None, (goal.condition, goal.reason)))
        for schedule, prompt in (cron for cron in session.crons.values() if len(cron) == 2):
            yield f"schedule, {schedule}", prompt
        if session.last_text:
            yield "last text", session.last_text

    def facts(self, session: Session) -> Iterator[tuple[str, str]]:
        goal = session.goal
        passed = "unknown" if session.test_passed is None else "passed" if session.test_passed else "failed"
        pairs = (
            ("title", session.title),
            ("working folder", session.cwd),
            ("branch", session.branch),
            ("version", session.version),
            ("tokens of the goal, a share of all", f"{goal.tokens:,}" if goal and goal.tokens else ""),
            ("errors", f"{session.error_count:,}" if session.error_count else ""),
            ("compactions", f"{session.compactions:,}" if session.compactions else ""),
            ("Stop hooks that blocked in a row", f"{session.blocks:,}" if session.blocks else ""),
            ("last test run", session.test_command and f"{session.test_command} ({passed})"),
            ("next wake-up", session.wakeup),
        )
        yield from ((label, value) for label, value in pairs if value)

    def _entry(self, files: RunnerFiles, path: Path) -> _Entry | None:
        known = self._entries.get(path)
        if known is None and not _may_belong(files, path):
            return None
        folded = files.fold(path, self.fold)
        if folded is None:
            return None
        if known is not None and known.folded is folded:
            return known
        state: Session = folded.state
        if not state.cwd or not files.folders.contain(state.cwd):
            if state.cwd:
                files.remember(_key(path), state.cwd)
            return None
        return _Entry(path, folded, parse_time(state.started))


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _projects(folders: Folders) -> Path | None:
    home = folders.private("CLAUDE_CONFIG_DIR", ".claude")
    return home / "projects" if home is not None else None


def session_folders(files: RunnerFiles) -> list[Path]:
    """Return folders for sessions of the project, its folders and other worktrees."""
    projects = _projects(files.folders)
    if projects is None:
        return []
    found: dict[Path, None] = {}
    for root in files.folders.roots:
        name = project_slug(root)
        for folder in files.names(projects, f"{name[:_MAX_SLUG]}*"):
            rest = folder.name[len(name) :]
            if len(name) > _MAX_SLUG or not rest or rest.startswith("-"):
                found[folder] = None
    return list(found)


def _transcripts(files: RunnerFiles) -> Iterator[Path]:
    """Yield transcripts; subagents, in a folder named as their session, precede it."""
    for folder in session_folders(files):
        for path in files.names(folder):
            if path.name.endswith(".jsonl"):
                yield path
            elif "." not in path.name and path.name != "memory":
                yield from files.names(path / SUBAGENTS, "agent-*.jsonl")


def _may_belong(files: RunnerFiles, path: Path) -> bool:
    """Return whether a transcript may be the project's: folder names can begin alike."""
    cwd = files.remembered(_key(path))
    if not isinstance(cwd, str):
        if any(path.parent.name == project_slug(root) for root in files.folders.roots):
            return True
        found = _CWD.search(files.first_line(path))
        cwd = msgspec.json.decode(found[1]) if found else ""
    return not cwd or files.folders.contain(cwd)


def _key(path: Path) -> str:
    return f"cwd of {path}"


def _turns(session: Session) -> Iterator[Turn]:
    yield from session.turns
    if session.turn.has_work:
        yield replace(session.turn, number=session.turn_count + 1, at=session.turn.at or session.last)


def _whole(session: Session) -> Iteration:
    """Return a session as one iteration of a loop."""
    parts = [iteration_of(turn) for turn in _turns(session)]
    last = parts[-1] if parts else Iteration()
    failures = dict.fromkeys(failure for part in parts for failure in part.failures)
    return replace(
        last,
        at=parse_time(session.started),
        failures=tuple(failures),
        files=tuple(session.changed),
        fix=next((part.fix for part in reversed(parts) if part.fix is not None), None),
        tools=tuple(dict.fromkeys(tool for part in parts for tool in part.tools)),
    )
