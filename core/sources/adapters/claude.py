"""Sessions of Claude Code: goals, schedules, background jobs, subagents, headless loops (docs/adapter-files.md#claude).

The transcripts are folded in `claude_transcript`; memories are read in `claude_memory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.regexes import lazy_regex
from core.records.loops import Iteration, Loop, LoopDetails
from core.records.times import parse_time
from core.sources.adapters.agent_files import project_slug
from core.sources.adapters.beads import closed_issues
from core.sources.adapters.claude_session import iteration_of
from core.sources.adapters.claude_states import (
    OVER_AFTER,
    SUBAGENTS,
    Job,
    Signs,
    build_job,
    build_loop,
    read_jobs,
    read_processes,
)
from core.sources.adapters.claude_transcript import SessionFold
from core.sources.adapters.runner_files import Folded
from core.sources.adapters.sessions import BareLoops, SessionAdapter

if TYPE_CHECKING:
    from core.records.lessons import Lesson
    from core.sources.adapters.claude_session import Session, Turn
    from core.sources.adapters.contract import Folders, Moment
    from core.sources.adapters.runner_files import RunnerFiles

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
        yield from _lone_jobs(files, jobs.values(), entries)

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
        from core.sources.adapters.claude_memory import read_memories  # not needed for lists of loops

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
        pairs = (
            ("title", session.title),
            ("working folder", session.cwd),
            ("branch", session.branch),
            ("version", session.version),
            ("tokens of the goal, a share of all", f"{goal.tokens:,}" if goal and goal.tokens else ""),
            ("errors", f"{session.error_count:,}" if session.error_count else ""),
            ("compactions", f"{session.compactions:,}" if session.compactions else ""),
            ("Stop hooks that blocked in a row", f"{session.blocks:,}" if session.blocks else ""),
            ("last test run", session.test_command and f"{session.test_command} ({_passed(session.test_passed)})"),
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


def _projects(folders: Folders) -> Path | None:
    home = folders.private("CLAUDE_CONFIG_DIR", ".claude")
    return home / "projects" if home is not None else None


def session_folders(files: RunnerFiles) -> list[Path]:
    """Return the folders that can hold sessions of the project, its folders and its other working trees."""
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
    """Yield the transcripts of subagents, whose folder has the name of their session, before that of the session."""
    for folder in session_folders(files):
        for path in files.names(folder):
            if path.name.endswith(".jsonl"):
                yield path
            elif "." not in path.name and path.name != "memory":
                yield from files.names(path / SUBAGENTS, "agent-*.jsonl")


def _may_belong(files: RunnerFiles, path: Path) -> bool:
    """Return whether a transcript may be of the project: the names of folders of two projects can begin alike."""
    cwd = files.remembered(_key(path))
    if not isinstance(cwd, str):
        if any(path.parent.name == project_slug(root) for root in files.folders.roots):
            return True
        found = _CWD.search(files.first_line(path))
        cwd = msgspec.json.decode(found[1]) if found else ""
    return not cwd or files.folders.contain(cwd)


def _key(path: Path) -> str:
    return f"cwd of {path}"


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _lone_jobs(files: RunnerFiles, jobs: Iterable[Job], entries: Iterable[Path]) -> Iterator[Loop]:
    """Yield the jobs of the project without a transcript."""
    known = {path.stem for path in entries}
    for job in jobs:
        if job.session_id not in known and job.cwd and files.folders.contain(job.cwd):
            yield build_job(job, files.shown(job.path), files.modified_at(job.path))


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


def _passed(value: bool | None) -> str:
    return {True: "passed", False: "failed"}.get(value, "unknown") if value is not None else "unknown"
