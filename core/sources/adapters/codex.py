"""Adapter of Codex: its sessions, goals and memories (docs/adapter-files.md#codex)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.grouping import group_pairs
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, StateSource
from core.records.times import minute_of, parse_time
from core.sources.adapters.codex_rollout import Goal, Rollout, RolloutFold, normalize_status, read_meta
from core.sources.adapters.join import HEADLESS, INTERACTIVE
from core.sources.adapters.runner_files import read_table, utc
from core.sources.adapters.sessions import (
    COMPLETE,
    LOST_AFTER,
    QUIET_AFTER,
    BareLoops,
    SessionAdapter,
    Status,
    join_sessions,
)
from core.sources.adapters.values import MAX_LABEL, MAX_TEXT, clip

if TYPE_CHECKING:
    from core.records.lessons import Lesson
    from core.sources.adapters.codex_memories import MemoryReader
    from core.sources.adapters.contract import Folders, Moment
    from core.sources.adapters.runner_files import Folded, RunnerFiles

_CLOCK_TOLERANCE: Final = timedelta(seconds=60)
_FOLDERS_KEY: Final = "working folders"
_GOALS: Final = {
    "active": LoopStatus.RUNNING,
    "paused": LoopStatus.PAUSED,
    "blocked": LoopStatus.WAITING,
    "usage_limited": LoopStatus.LIMIT,
    "budget_limited": LoopStatus.LIMIT,
    "complete": LoopStatus.COMPLETED,
}
_ENDS: Final = {
    COMPLETE: LoopStatus.COMPLETED,
    "interrupted": LoopStatus.ABORTED,
    "replaced": LoopStatus.ABORTED,
    "turn_aborted": LoopStatus.ABORTED,
    "budget_limited": LoopStatus.LIMIT,
    "review_ended": LoopStatus.COMPLETED,
}
_LIMITS: Final = frozenset({"usage_limit_exceeded", "usage_limit_reached", "session_budget_exceeded"})
_INTERACTIVE_SOURCES: Final = frozenset({"cli", "vscode", "atlas", "chatgpt", ""})
_GOAL_COLUMNS: Final = ("thread_id", "objective", "status", "updated_at_ms")


class CodexAdapter(SessionAdapter):
    """Reads `$CODEX_HOME` or `~/.codex`."""

    name = "codex"
    title = "Codex"
    versions = "0.40 to 0.149"
    contains = "sessions, goals, subagents, turns, failed commands, tests, changed files, tokens, memories with outcome"
    lacks = "cost, the process of a session, a session that waits for an approval"
    fold = RolloutFold()

    def __init__(self) -> None:
        self._working_folders: dict[str, str] | None = None  # by name of the rollout
        self._roots: tuple[Path, ...] = ()
        self._are_own: dict[Path, bool] = {}
        self._built: dict[Path, tuple[Any, Loop]] = {}
        self._bare = BareLoops()
        self._memories: MemoryReader | None = None

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        home = _home(folders)
        if home is None:
            return ()
        return tuple(
            str(home / name) for name in ("sessions", "archived_sessions", "memories") if (home / name).is_dir()
        )

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        home = _home(files.folders)
        if home is None:
            return ()
        goals = _read_goals(files, home)
        found: dict[str, tuple[tuple[str, bool], Loop]] = {}
        for path in self._own_rollouts(files, home):
            folded = files.fold(path, self.fold)
            if folded is None or not folded.state.id:
                continue
            loop = self._loop(files, path, folded, goals, moment)
            rank = folded.state.last, not loop.archived
            if loop.id not in found or found[loop.id][0] < rank:
                found[loop.id] = rank, loop
        return self._bare.join((loop for _, loop in found.values()), moment.now)

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        if len(loop.session_ids) > 1:
            sessions = [self.details(replace(loop, session_ids=(), files=(file,)), files) for file in loop.files]
            return join_sessions(loop, sessions[::-1])
        return super().details(loop, files)

    def status(self, session: Rollout, quiet: timedelta) -> Status:
        turn = session.turns[-1] if session.turns else None
        if turn is None:
            return Status(LoopStatus.UNKNOWN)
        if turn.error and turn.end in ("", COMPLETE):
            status = LoopStatus.LIMIT if turn.error_kind in _LIMITS else LoopStatus.FAILED
            return Status(status, clip(turn.error_kind or turn.error, MAX_LABEL), StateSource.REPORTED)
        if turn.end == COMPLETE and _is_interactive(session) and quiet <= QUIET_AFTER:
            return Status(LoopStatus.PAUSED)  # the person may go on
        if turn.end:
            return Status(_ENDS.get(turn.end, LoopStatus.UNKNOWN), turn.end, StateSource.REPORTED)
        if turn.is_reported and quiet <= LOST_AFTER:
            return Status(LoopStatus.RUNNING, "", StateSource.REPORTED)
        return Status(LoopStatus.RUNNING if quiet <= QUIET_AFTER else LoopStatus.UNKNOWN)

    def notes(self, session: Rollout) -> Iterator[tuple[str, str]]:
        yield "last message", session.turn.text

    def facts(self, session: Rollout) -> Iterator[tuple[str, str]]:
        test = session.test
        yield "session", session.id
        yield "started by", session.source
        yield "version", session.version
        yield "branch", session.branch
        yield "forked from", session.forked_from
        yield "goal", session.goal.status if session.goal is not None else ""
        yield "commands", f"{session.commands:,}" if session.commands else ""
        yield "failed commands", f"{session.failures:,}" if session.failures else ""
        yield "last test", test.text if test is not None else ""
        yield "changed files", f"{len(session.files):,}" if session.files else ""
        yield "compactions", f"{session.compactions:,}" if session.compactions else ""

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        if (home := _home(files.folders)) is None:
            return ()
        if self._memories is None:
            from core.sources.adapters.codex_memories import MemoryReader  # not needed for lists of loops

            self._memories = MemoryReader()
        return self._memories.read(files, home)

    # Parts

    def _own_rollouts(self, files: RunnerFiles, home: Path) -> Iterator[Path]:
        """Yield the rollouts of sessions in the project; the first line of each is read once."""
        known = self._working_folders
        if known is None:
            known = self._working_folders = _load_folders(files.remembered(_FOLDERS_KEY))
        if self._roots != files.folders.roots:
            self._roots = files.folders.roots
            self._are_own.clear()
        count = len(known)
        for path in _rollouts(files, home):
            is_own = self._are_own.get(path)
            if is_own is None:
                folder = known.get(path.name)
                if folder is None:
                    id, folder = read_meta(files.first_line(path))
                    if not id:
                        continue
                    known[path.name] = folder
                is_own = self._are_own[path] = files.folders.contain(folder)
            if is_own:
                yield path
        if len(known) > count:
            files.remember(_FOLDERS_KEY, group_pairs((folder, name) for name, folder in known.items()))

    def _loop(
        self, files: RunnerFiles, path: Path, folded: Folded, goals: dict[str, Goal] | None, moment: Moment
    ) -> Loop:
        state: Rollout = folded.state
        goal = _choose_goal(state, goals)
        key = folded.stamp, folded.offset, goal
        known = self._built.get(path)
        if known is not None and known[0] == key and known[1].status.ended:
            return known[1]
        loop = self._goal_loop(folded, goal, moment, files.shown(path))
        self._built[path] = key, loop
        return loop

    def _goal_loop(self, folded: Folded, goal: Goal | None, moment: Moment, file: str) -> Loop:
        """Return the loop of a session with its goal, whose status outweighs that of the last turn."""
        state: Rollout = folded.state
        last, modified_at, turn = parse_time(state.last), folded.stamp.modified_at, state.turn
        changed = utc(goal.updated_ms) if goal is not None and goal.updated_ms else None
        activity = last if last is not None and last <= moment.now + _CLOCK_TOLERANCE else modified_at
        if changed is not None and activity < changed <= moment.now:
            activity = changed
        if goal is not None and goal.status in _GOALS:
            found = Status(_GOALS[goal.status], goal.status, StateSource.REPORTED)
        else:
            found = self.status(state, moment.now - activity)
        ended_at = changed or parse_time(turn.ended)
        values: dict[str, Any] = {}
        if found.status is LoopStatus.WAITING:
            why = f"the goal is {found.reason}; last activity {minute_of(activity)} UTC"
            values = {"end_reason": found.reason, "liveness": Liveness.IDLE, "liveness_reason": why, "badges": ()}
        is_work = goal is not None or not _is_interactive(state)  # else it may be a question only
        return self.make_loop(
            state,
            found,
            activity,
            moment,
            file,
            modified_at,
            task=state.task or (goal.objective if goal is not None else ""),
            criteria=(goal.objective,) if goal is not None and goal.objective else (),
            tags=tuple(_tags(state, has_goal=goal is not None)),
            raw_status=goal.status if goal is not None else turn.end or ("task_started" if turn.is_reported else ""),
            archived="/archived_sessions/" in file,
            ended_at=(ended_at or activity) if found.status.ended else None,
            ended_approximate=found.status.ended and ended_at is None,
            progress=replace(
                state.progress,
                files_changed=len(state.files) or (0 if is_work and not state.has_other_changes else None),
                is_claimed=goal is not None and goal.status == "complete",
            ),
            **values,
        )


def _load_folders(kept: Any) -> dict[str, str]:
    """Return the working folder of each rollout, by name, from the names by folder that were kept."""
    if not isinstance(kept, dict) or not all(isinstance(names, list) for names in kept.values()):
        return {}
    return {name: folder for folder, names in kept.items() for name in names if isinstance(name, str)}


def _rollouts(files: RunnerFiles, home: Path) -> Iterator[Path]:
    compressed = 0
    sessions = home / "sessions"
    folders = [sessions, home / "archived_sessions"]
    for year in files.names(sessions, "[0-9]*"):
        folders += (day for month in files.names(year, "[0-9]*") for day in files.names(month, "[0-9]*"))
    for folder in folders:
        yield from (plain := files.names(folder, "rollout-*.jsonl"))
        names = {path.name for path in plain}
        compressed += sum(path.stem not in names for path in files.names(folder, "rollout-*.jsonl.zst"))
    if compressed:
        files.report(sessions, f"compressed rollouts are not read ({compressed:,})", "compressed")


def _home(folders: Folders) -> Path | None:
    return folders.private("CODEX_HOME", ".codex")


def _choose_goal(state: Rollout, goals: dict[str, Goal] | None) -> Goal | None:
    """Return the goal in the database, or that in the rollout if it is newer, or if there is no database.

    A goal that is active in the rollout, but not in the database, was cleared.
    """
    own, kept = state.goal, (goals or {}).get(state.id)
    if own is None or (kept is not None and kept.updated_ms >= own.updated_ms):
        return kept
    if kept is None:
        return own if goals is None or own.status != "active" else None
    return own


def _is_interactive(state: Rollout) -> bool:
    """Return whether a person started the session."""
    return state.source in _INTERACTIVE_SOURCES and not state.parent


def _tags(state: Rollout, *, has_goal: bool) -> Iterator[str]:
    if has_goal:
        yield "goal"
    if state.parent:
        yield "subagent"
    else:
        yield INTERACTIVE if _is_interactive(state) else HEADLESS


def _databases(files: RunnerFiles, home: Path) -> list[Path]:
    """Return the files that can contain goals; their names have version numbers, and they were moved once."""
    folders = [home, home / "sqlite"]
    if other := files.folders.environment.get("CODEX_SQLITE_HOME", ""):
        folders.append(Path(other))
    return [
        path
        for folder in folders
        for name in ("goals_*.sqlite", "state_*.sqlite")
        for path in files.names(folder, name)
    ]


def _read_goals(files: RunnerFiles, home: Path) -> dict[str, Goal] | None:
    """Return goals by session ID, from the database that was updated last; None if no database has the table."""
    required = frozenset({"thread_id", "status"})
    tables = (read_table(files, path, "thread_goals", _GOAL_COLUMNS, required) for path in _databases(files, home))
    found = [{str(row[0])[:MAX_LABEL]: _goal(row) for row in rows} for rows in tables if rows is not None]
    return max(found, key=lambda goals: max((one.updated_ms for one in goals.values()), default=-1), default=None)


def _goal(row: tuple[Any, ...]) -> Goal:
    return Goal(
        objective=clip(row[1], MAX_TEXT) if isinstance(row[1], str) else "",
        status=normalize_status(row[2]),
        updated_ms=row[3] if type(row[3]) is int and row[3] >= 0 else 0,
    )
