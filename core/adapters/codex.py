"""Adapter of Codex: its sessions, goals and memories (docs/adapter-files.md#codex)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.adapters import codex_goals
from core.adapters.bare_loops import BareLoops, join_sessions
from core.adapters.beads import closed_issues
from core.adapters.codex_payloads import read_meta
from core.adapters.codex_records import Goal, Rollout, Tokens
from core.adapters.codex_rollout import RolloutFold
from core.adapters.contract import Places
from core.adapters.join import HEADLESS, INTERACTIVE
from core.adapters.runner_files import utc
from core.adapters.sessions import COMPLETE, Turn, make_iteration
from core.adapters.values import MAX_LABEL, clip
from core.base.grouping import group_pairs
from core.records.loops import (
    Liveness,
    Loop,
    LoopDetails,
    LoopStatus,
    Progress,
    StateSource,
    Usage,
)
from core.records.times import minute_of, parse_time
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.adapters.codex_memories import MemoryReader
    from core.adapters.contract import Delivery, Folders, Moment
    from core.adapters.runner_files import Folded, RunnerFiles
    from core.records.lessons import Lesson

QUIET_AFTER: Final = timedelta(minutes=10)  # without a new line, a session that reports that it runs is stale
LOST_AFTER: Final = timedelta(days=1)  # without a new line, nothing is known about a turn without an end
_CLOCK_TOLERANCE: Final = timedelta(seconds=60)
_DATABASES: Final = ("goals_1.sqlite", "goals_1.sqlite-wal", "memories_1.sqlite", "memories_1.sqlite-wal")
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
_FOLD: Final = RolloutFold()


class CodexAdapter:
    """Reads `$CODEX_HOME` or `~/.codex`; see `core.adapters.contract.Adapter`."""

    name = "codex"
    title = "Codex"
    versions = "0.40 to 0.149"
    contains = "sessions, goals, subagents, turns, failed commands, tests, changed files, tokens, memories with outcome"
    lacks = "cost, the process of a session, a session that waits for an approval"

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

    def places(self, folders: Folders) -> Places:
        home = _home(folders)
        if home is None:
            return Places()
        names = ("sessions", "archived_sessions", "memories", "sqlite", *_DATABASES)
        return Places(polled=tuple(home / name for name in names))

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        home = _home(files.folders)
        if home is None:
            return ()
        goals = codex_goals.read_goals(files, home)
        found: dict[str, tuple[tuple[str, bool], Loop]] = {}
        for path in self._own_rollouts(files, home):
            folded = files.fold(path, _FOLD)
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
        folded = files.fold(_path(loop.files[0], files.folders), _FOLD) if loop.files else None
        if folded is None:
            return LoopDetails(loop_id=loop.id)
        state: Rollout = folded.state
        first = state.turn_count - len(state.turns) + 1
        last = state.turns[-1].text if state.turns else ""
        return LoopDetails(
            loop_id=loop.id,
            iterations=tuple(make_iteration(number, turn) for number, turn in enumerate(state.turns, start=first)),
            notes=(("last message", last),) if last else (),
            facts=(
                *((label, value) for label, value in _facts(state) if value),
                *closed_issues(files, loop.session_ids),
            ),
        )

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        if (home := _home(files.folders)) is None:
            return ()
        if self._memories is None:
            from core.adapters.codex_memories import MemoryReader  # not needed for lists of loops

            self._memories = MemoryReader()
        return self._memories.read(files, home)

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        return None

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
        loop = _build_loop(state, goal, moment, folded.stamp.modified_at, files.shown(path))
        self._built[path] = key, loop
        return loop


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


def _path(file: str, folders: Folders) -> Path:
    """Return the path of a file as `RunnerFiles.shown` shows it."""
    if file.startswith("~/") and folders.home is not None:
        return folders.home / file[2:]
    return folders.project / file


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


def _build_loop(state: Rollout, goal: Goal | None, moment: Moment, modified_at: datetime, file: str) -> Loop:
    last = parse_time(state.last)
    activity = last if last is not None and last <= moment.now + _CLOCK_TOLERANCE else modified_at
    if goal is not None and (changed := utc(goal.updated_ms)) is not None and activity < changed <= moment.now:
        activity = changed
    status, reason, source = _status(state, goal, moment.now - activity)
    if status is LoopStatus.WAITING:
        liveness, why = Liveness.IDLE, f"the goal is {reason}; last activity {minute_of(activity)} UTC"
    else:
        liveness, why = check_liveness(status, None, activity, modified_at, moment.now, QUIET_AFTER, moment.processes)
    turn = state.turns[-1] if state.turns else Turn()
    ended_at = (utc(goal.updated_ms) if goal and goal.updated_ms else parse_time(turn.ended)) if status.ended else None
    return Loop(
        id=f"codex:{state.id}",
        runner="codex",
        sources=("codex",),
        owner="codex",
        model=state.model,
        task=state.task or (goal.objective if goal is not None else ""),
        criteria=(goal.objective,) if goal is not None and goal.objective else (),
        tags=tuple(_tags(state, has_goal=goal is not None)),
        status=status,
        raw_status=goal.status if goal is not None else turn.end or ("task_started" if turn.is_reported else ""),
        state_source=source,
        end_reason=reason if status.ended or status is LoopStatus.WAITING else "",
        liveness=liveness,
        liveness_reason=why,
        badges=("stale",) if liveness is Liveness.STALE else (),
        archived="/archived_sessions/" in file,
        iteration=state.turn_count or None,
        started_at=parse_time(state.started),
        ended_at=(ended_at or activity) if status.ended else None,
        ended_approximate=status.ended and ended_at is None,
        updated_at=activity,
        last_activity=activity,
        modified_at=modified_at,
        last_result=turn.text,
        usage=_usage(state.tokens, state.copied),
        parent=f"codex:{state.parent}" if state.parent else "",
        session_ids=(state.id,),
        files=(file,),
        cwd=state.cwd,
        progress=Progress(
            test_passed=state.test.has_passed if state.test is not None else None,
            files_changed=_count_files(state, has_goal=goal is not None),
            is_claimed=goal is not None and goal.status == "complete",
            changed_at=parse_time(state.changed),
        ),
    )


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


def _count_files(state: Rollout, *, has_goal: bool) -> int | None:
    """Return the number of changed files; None if it is not certain, or if the work may be a question only."""
    is_work = has_goal or not _is_interactive(state)
    return len(state.files) or (0 if is_work and not state.has_other_changes else None)


def _status(state: Rollout, goal: Goal | None, quiet: timedelta) -> tuple[LoopStatus, str, StateSource]:
    """Return the status, its reason in the words of Codex, and how it is known."""
    if goal is not None and goal.status in _GOALS:
        return _GOALS[goal.status], goal.status, StateSource.REPORTED
    turn = state.turns[-1] if state.turns else None
    if turn is None:
        return LoopStatus.UNKNOWN, "", StateSource.INFERRED
    if turn.error and turn.end in ("", "task_complete"):
        is_limit = turn.error_kind in _LIMITS
        reason = clip(turn.error_kind or turn.error, MAX_LABEL)
        return LoopStatus.LIMIT if is_limit else LoopStatus.FAILED, reason, StateSource.REPORTED
    if turn.end == COMPLETE and _is_interactive(state) and quiet <= QUIET_AFTER:
        return LoopStatus.PAUSED, "", StateSource.INFERRED  # the person may go on
    if turn.end:
        return _ENDS.get(turn.end, LoopStatus.UNKNOWN), turn.end, StateSource.REPORTED
    if turn.is_reported and quiet <= LOST_AFTER:
        return LoopStatus.RUNNING, "", StateSource.REPORTED
    is_running = quiet <= QUIET_AFTER
    return LoopStatus.RUNNING if is_running else LoopStatus.UNKNOWN, "", StateSource.INFERRED


def _usage(tokens: Tokens | None, copied: Tokens | None) -> Usage:
    """Return the usage without that of the session whose history was copied."""
    if tokens is None:
        return Usage()
    own = tokens
    if copied is not None and tokens.input >= copied.input and tokens.output >= copied.output:
        names = Tokens.__struct_fields__
        own = Tokens(*(max(getattr(tokens, name) - getattr(copied, name), 0) for name in names))
    return Usage(
        input=max(own.input - own.cached - own.cache_write, 0),
        output=own.output,
        cache_read=own.cached,
        cache_write=own.cache_write or None,
        reasoning=own.reasoning,
    )


def _facts(state: Rollout) -> Iterator[tuple[str, str]]:
    goal, test = state.goal, state.test
    yield "session", state.id
    yield "started by", state.source
    yield "version", state.version
    yield "branch", state.branch
    yield "forked from", state.forked_from
    if goal is not None:
        yield "goal", goal.status
    yield "commands", f"{state.commands:,}" if state.commands else ""
    yield "failed commands", f"{state.failures:,}" if state.failures else ""
    yield "last test", test.text if test is not None else ""
    yield "changed files", f"{len(state.files):,}" if state.files else ""
    yield "compactions", f"{state.compactions:,}" if state.compactions else ""
