"""Adapter of opencode: its sessions, with tokens and cost (docs/adapter-files.md#opencode)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.adapters.beads import closed_issues
from core.adapters.contract import Places
from core.adapters.opencode_turns import (
    LAYOUTS,
    Layout,
    Message,
    inside,
    read_all_turns,
    read_last_messages,
    read_turns,
    sum_messages,
    to_time,
)
from core.adapters.sessions import Turn, make_iteration
from core.adapters.tables import columns_of, read_table
from core.adapters.values import MAX_LABEL, cut
from core.base.regexes import lazy_regex
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, Progress, StateSource, Usage
from core.records.times import parse_time
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.adapters.contract import Delivery, Folders, Moment
    from core.adapters.runner_files import RunnerFiles
    from core.records.lessons import Lesson

QUIET_AFTER: Final = timedelta(minutes=10)  # without a change, a session whose last message is open is stale
LOST_AFTER: Final = timedelta(days=1)  # without a change, nothing is known about it
_COLUMNS: Final = (
    *("id", "parent_id", "directory", "title", "agent", "model", "cost", "tokens_input", "tokens_output"),
    *("tokens_reasoning", "tokens_cache_read", "tokens_cache_write", "time_created", "time_updated"),
    *("time_archived", "version", "summary_files"),
)
_REQUIRED: Final = frozenset({"id", "directory"})
_DONE: Final = frozenset({"stop", "end_turn", "end-turn", "unknown", ""})
_GOES_ON: Final = frozenset({"tool-calls", "tool_use", "tool-use"})
_ABORTED: Final = frozenset({"MessageAbortedError", "AbortError", "aborted"})
_LIMITS: Final = frozenset({"MessageOutputLengthError", "ContextOverflowError", "length", "max_tokens"})
_MAX_COUNT: Final = 1 << 53
_RUN_PROMPT: Final = lazy_regex(r'"[^"]*"')  # `opencode run` puts an argument with spaces into quotes


class _Session(Struct, frozen=True, gc=False):
    """One row of the table of sessions."""

    id: str
    parent: str
    cwd: str
    title: str
    agent: str
    model: str
    usage: Usage
    created: datetime | None
    updated: datetime | None
    is_archived: bool
    version: str
    files: int | None


class OpencodeAdapter:
    """Reads opencode's database; see `core.adapters.contract.Adapter`."""

    name = "opencode"
    title = "opencode"
    versions = "1.2 to 2.0"
    contains = "sessions, subagents, turns, failed commands, tests, changed files, tokens, cost"
    lacks = "the process of a session, whether it waits for a permission, how it was started"

    def __init__(self) -> None:
        self._built: dict[str, tuple[Any, Loop]] = {}
        self._places: dict[str, tuple[Path, Layout]] = {}
        self._prompts: dict[str, str] = {}

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        home = folders.private("XDG_DATA_HOME", ".local/share")
        path = home / "opencode" / "opencode.db" if home is not None else None
        return (str(path),) if path is not None and path.is_file() else ()

    def places(self, folders: Folders) -> Places:
        home = folders.private("XDG_DATA_HOME", ".local/share")
        if home is None:
            return Places()
        path = home / "opencode" / "opencode.db"
        return Places(polled=(path, path.with_name(f"{path.name}-wal")))

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        found: dict[str, Loop] = {}
        self._places.clear()
        for path in _databases(files):
            for layout in LAYOUTS:
                sessions = _read_sessions(files, path, layout)
                last = read_last_messages(files, path, layout) if sessions else {}
                for session in sessions:
                    if session.id not in self._places and files.folders.contain(session.cwd):
                        self._places[session.id] = path, layout
                        loop = self._loop(files, session, last.get(session.id), moment)
                        found[loop.id] = loop
        return list(found.values())

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        id = loop.id.removeprefix("opencode:")
        path, layout = self._places.get(id) or _find(files, id)
        turns = read_turns(files, path, layout, id, loop.cwd) if path is not None and layout is not None else []
        failed = sum(turn.failed for turn in turns)
        facts = {"session": id, "failed commands": f"{failed:,}" if failed else ""}
        return LoopDetails(
            loop_id=loop.id,
            iterations=tuple(make_iteration(number, turn) for number, turn in enumerate(turns, start=1)),
            notes=(("last message", turns[-1].text),) if turns and turns[-1].text else (),
            facts=(
                *((label, value) for label, value in facts.items() if value),
                *closed_issues(files, loop.session_ids),
            ),
        )

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        return None

    def _loop(self, files: RunnerFiles, session: _Session, last: Message | None, moment: Moment) -> Loop:
        key = session, last
        known = self._built.get(session.id)
        if known is not None and known[0] == key and known[1].status.ended:
            return known[1]
        path, layout = self._places[session.id]
        loop = _build_loop(session, last, moment, files.shown(path))
        loop = replace(loop, task=self._first_prompt(files, session, path, layout) or loop.task)
        if loop.status.ended:
            turns = read_turns(files, path, layout, session.id, session.cwd)
            loop = replace(
                loop,
                last_result=turns[-1].text if turns else "",
                iteration=len(turns) or None,
                progress=_progress(session, turns),
            )
        self._built[session.id] = key, loop
        return loop

    def _first_prompt(self, files: RunnerFiles, session: _Session, path: Path, layout: Layout) -> str:
        """Return the first prompt of a session, which is read once; its title is generated."""
        if not self._prompts.get(session.id):
            turns = read_all_turns(files, path, layout, session.id, session.cwd)
            prompt = next((turn.prompt for turn in turns if turn.prompt), "")
            self._prompts[session.id] = prompt[1:-1] if _RUN_PROMPT.fullmatch(prompt) else prompt
        return self._prompts[session.id]


def _databases(files: RunnerFiles) -> list[Path]:
    home = files.folders.private("XDG_DATA_HOME", ".local/share")
    if home is None:
        return []
    return files.names(home / "opencode", "opencode*.db")


def _find(files: RunnerFiles, id: str) -> tuple[Path, Layout] | tuple[None, None]:
    for path in _databases(files):
        for layout in LAYOUTS:
            if read_table(files, path, layout.sessions, ("id",), {"id"}, ("id = ?", (id,))):
                return path, layout
    return None, None


def _read_sessions(files: RunnerFiles, path: Path, layout: Layout) -> list[_Session]:
    where = inside(files.folders.roots)
    rows = read_table(files, path, layout.sessions, _COLUMNS, _REQUIRED, where) or []
    sums: dict[str, Sequence[Any]] = {}
    if rows and "tokens_input" not in columns_of(files, path, layout.sessions):
        sums = sum_messages(files, path)
    return [_session(row, sums.get(str(row[0]))) for row in rows if isinstance(row[0], str)]


def _session(row: Sequence[Any], sums: Sequence[Any] | None) -> _Session:
    cost, *counts = row[6:12] if sums is None else sums
    tokens = [_count(value) for value in counts]
    model = _model(row[5])
    return _Session(
        id=row[0][:MAX_LABEL],
        parent=cut(row[1], MAX_LABEL),
        cwd=cut(row[2]),
        title=cut(row[3]),
        agent=cut(row[4], MAX_LABEL),
        model=model,
        usage=Usage(
            input=tokens[0],
            output=_sum(tokens[1], tokens[2]),
            reasoning=tokens[2],
            cache_read=tokens[3],
            cache_write=tokens[4],
            cost_usd=float(cost) if isinstance(cost, int | float) and 0 < cost < _MAX_COUNT else None,
        ),
        created=to_time(row[12]),
        updated=to_time(row[13]),
        is_archived=bool(row[14]),
        version=cut(row[15], MAX_LABEL),
        files=_count(row[16]),
    )


def _model(value: Any) -> str:
    """Return the name of a model, which is a text or a JSON object."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str | bytes) else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return cut(value, MAX_LABEL)
    name = found.get("id") or found.get("modelID") if isinstance(found, dict) else found
    return cut(name, MAX_LABEL)


def _build_loop(session: _Session, last: Message | None, moment: Moment, file: str) -> Loop:
    times = [time for time in (session.updated, last.at if last else None, session.created) if time is not None]
    activity = max((time for time in times if time <= moment.now), default=None)
    quiet = moment.now - activity if activity is not None else LOST_AFTER
    status, reason, source = _status(last, quiet)
    liveness, why = check_liveness(status, None, activity, None, moment.now, QUIET_AFTER, moment.processes)
    return Loop(
        id=f"opencode:{session.id}",
        runner="opencode",
        sources=("opencode",),
        owner="opencode",
        model=session.model or (last.model if last else ""),
        task=session.title,
        status=status,
        raw_status=reason,
        state_source=source,
        end_reason=reason if status.ended else "",
        liveness=liveness,
        liveness_reason=why,
        badges=("stale",) if liveness is Liveness.STALE else (),
        archived=session.is_archived,
        started_at=session.created,
        ended_at=activity if status.ended else None,
        updated_at=activity,
        last_activity=activity,
        usage=session.usage,
        parent=f"opencode:{session.parent}" if session.parent else "",
        session_ids=(session.id,),
        files=(file,),
        cwd=session.cwd,
        progress=Progress(files_changed=session.files or None),
    )


def _status(last: Message | None, quiet: timedelta) -> tuple[LoopStatus, str, StateSource]:
    """Return the status that the last message shows, its reason in the words of opencode, and how it is known."""
    if last is not None and last.role == "assistant":
        if last.error:
            kind = LoopStatus.LIMIT if last.error in _LIMITS else LoopStatus.FAILED
            return LoopStatus.ABORTED if last.error in _ABORTED else kind, last.error, StateSource.REPORTED
        if last.completed is not None and last.finish not in _GOES_ON:
            is_limit = last.finish in _LIMITS
            status = LoopStatus.LIMIT if is_limit else LoopStatus.COMPLETED
            reason = last.finish or "completed"
            if is_limit or last.finish in _DONE:
                return status, reason, StateSource.REPORTED
            return LoopStatus.UNKNOWN, reason, StateSource.INFERRED
    if last is None or quiet > LOST_AFTER:
        return LoopStatus.UNKNOWN, "", StateSource.INFERRED
    return LoopStatus.RUNNING, last.role, StateSource.INFERRED


def _progress(session: _Session, turns: Sequence[Turn]) -> Progress:
    files = {file for turn in turns for file in turn.files}
    tests = [turn.test for turn in turns if turn.test is not None]
    return Progress(
        test_passed=tests[-1].has_passed if tests else None,
        files_changed=len(files) or session.files or None,
        changed_at=next((parse_time(turn.ended) for turn in reversed(turns) if turn.files), None),
    )


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < _MAX_COUNT else None


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
