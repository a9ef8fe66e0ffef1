"""Adapter of opencode, in both database layouts; docs/adapter-files.md#opencode."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.records.loops import Loop, LoopDetails, LoopStatus, Progress, StateSource, Usage
from core.records.times import iso, parse_time
from core.sources.adapters.runner_files import MAX_LABEL, MAX_TEXT, columns_of, cut, read_table, utc
from core.sources.adapters.sessions import (
    COMPLETE,
    LOST_AFTER,
    MAX_MESSAGE,
    Session,
    SessionAdapter,
    Turn,
    note_command,
)
from core.sources.liveness import State

if TYPE_CHECKING:
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

MAX_TURNS: Final = 100  # the last ones
_COLUMNS: Final = (
    *("id", "parent_id", "directory", "title", "model", "cost", "tokens_input", "tokens_output", "tokens_reasoning"),
    *("tokens_cache_read", "tokens_cache_write", "time_created", "time_updated", "time_archived", "summary_files"),
)
_REQUIRED: Final = frozenset({"id", "directory"})
_DONE: Final = frozenset({"stop", "end_turn", "end-turn", "unknown", ""})
_GOES_ON: Final = frozenset({"tool-calls", "tool_use", "tool-use"})
_ABORTED: Final = frozenset({"MessageAbortedError", "AbortError", "aborted"})
_LIMITS: Final = frozenset({"MessageOutputLengthError", "ContextOverflowError", "length", "max_tokens"})
_MAX_COUNT: Final = 1 << 53
_RUN_PROMPT: Final = lazy_regex(r'"[^"]*"')  # `opencode run` puts an argument with spaces into quotes
_MAX_CODE: Final = 600
_CHANGES: Final = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})
_DATA: Final = "CASE WHEN json_valid({0}.data) THEN {0}.data ELSE '{{}}' END"
_INSIDE: Final = "(directory = ? OR substr(directory, 1, ?) = ?)"


class Layout(Struct, frozen=True):
    """Tables and SQL of one layout; `parts` is the query for the parts of a session."""

    sessions: str
    messages: str
    role: str
    order: str
    parts: str


class Message(Struct, frozen=True, gc=False):
    """A message; `finish` is why an agent's message ended, `error` its error's name."""

    id: str
    role: str
    at: datetime | None = None
    completed: datetime | None = None
    error: str = ""
    reason: str = ""  # message of the error
    finish: str = ""
    model: str = ""
    text: str = ""  # of a user's message, in the newer layout


_OLD: Final = Layout(
    sessions="session",
    messages="message",
    role="json_extract(d, '$.role')",
    order="m.time_created, m.id",
    parts="""
        SELECT message_id, json_extract(d, '$.type'), json_extract(d, '$.tool'), json_extract(d, '$.state.status'),
            substr(json_extract(d, '$.state.input.command'), 1, 4000), json_extract(d, '$.state.input.filePath'),
            json_extract(d, '$.state.metadata.exit'), substr(json_extract(d, '$.state.error'), 1, 4000),
            substr(json_extract(d, '$.state.output'), -8000), substr(json_extract(d, '$.text'), 1, 4000),
            json_extract(d, '$.synthetic'), substr(json_extract(d, '$.state.input.oldString'), 1, 4000),
            substr(coalesce(json_extract(d, '$.state.input.newString'),
                json_extract(d, '$.state.input.content')), 1, 4000)
        FROM (SELECT p.id, p.message_id, {data} AS d FROM part p WHERE p.session_id = ?)
        WHERE json_extract(d, '$.type') IN ('tool', 'text') ORDER BY id""".replace("{data}", _DATA.format("p")),
)
_NEW: Final = Layout(
    sessions="session_v2",
    messages="session_message",
    role="m.type",
    order="m.seq",
    parts="""
        SELECT id, json_extract(c, '$.type'), coalesce(json_extract(c, '$.name'), json_extract(c, '$.tool')),
            json_extract(c, '$.state.status'), substr(json_extract(c, '$.state.input.command'), 1, 4000),
            coalesce(json_extract(c, '$.state.input.filePath'), json_extract(c, '$.state.input.path')),
            coalesce(json_extract(c, '$.state.metadata.exit'), json_extract(c, '$.state.structured.exit')),
            substr(coalesce(json_extract(c, '$.state.error.message'), json_extract(c, '$.state.error')), 1, 4000),
            substr(coalesce(json_extract(c, '$.state.output'), json_extract(c, '$.state.content[0].text')), -8000),
            substr(json_extract(c, '$.text'), 1, 4000), NULL,
            substr(json_extract(c, '$.state.input.oldString'), 1, 4000),
            substr(coalesce(json_extract(c, '$.state.input.newString'),
                json_extract(c, '$.state.input.content')), 1, 4000)
        FROM (
            SELECT m.id, m.seq, j.key, CASE WHEN j.type = 'object' THEN j.value ELSE '{}' END AS c
            FROM (SELECT id, seq, {data} AS d FROM session_message WHERE session_id = ? AND type = 'assistant') m,
                json_each(m.d, '$.content') j
        )
        WHERE json_extract(c, '$.type') IN ('tool', 'text') ORDER BY seq, key""".replace(
        "{data}", _DATA.format("session_message")
    ),
)
_LAYOUTS: Final = (_NEW, _OLD)
"""Newest first: an upgrade copies sessions to the new tables, where they continue."""
_FIELDS: Final = """json_extract(d, '$.time.completed'),
    coalesce(json_extract(d, '$.error.name'), json_extract(d, '$.error.type')),
    substr(coalesce(json_extract(d, '$.error.data.message'), json_extract(d, '$.error.message')), 1, 600),
    json_extract(d, '$.finish'), coalesce(json_extract(d, '$.modelID'), json_extract(d, '$.model.id')),
    substr(json_extract(d, '$.text'), 1, 4000)"""
_SUMS: Final = f"""
    SELECT session_id, sum(json_extract(d, '$.cost')), sum(json_extract(d, '$.tokens.input')),
        sum(json_extract(d, '$.tokens.output')), sum(json_extract(d, '$.tokens.reasoning')),
        sum(json_extract(d, '$.tokens.cache.read')), sum(json_extract(d, '$.tokens.cache.write'))
    FROM (SELECT m.session_id, {_DATA.format("m")} AS d FROM message m
        WHERE m.session_id IN (SELECT id FROM session WHERE :condition:))
    GROUP BY session_id"""


def _inside(roots: Sequence[Path]) -> tuple[str, list[Any]]:
    """Return the condition, and its values, that a session's folder is in a root."""
    values = [value for root in map(str, roots) for value in (root, len(root) + 1, f"{root}/")]
    return " OR ".join([_INSIDE] * len(roots)) or "0", values


def _sum_messages(files: RunnerFiles, path: Path) -> dict[str, Sequence[Any]]:
    """Return cost and tokens by session, for versions without columns for them."""
    condition, values = _inside(files.folders.roots)
    return {str(row[0]): row[1:] for row in files.rows(path, _SUMS.replace(":condition:", condition), values)}


def _read_last_messages(files: RunnerFiles, path: Path, layout: Layout) -> dict[str, Message]:
    """Return the last message of each session in the project."""
    if not columns_of(files, path, layout.messages):
        return {}
    condition, values = _inside(files.folders.roots)
    types = "AND m.type IN ('user', 'assistant')" if layout is _NEW else ""
    order = ", ".join(f"{name} DESC" for name in layout.order.split(", "))
    query = f"""
        SELECT session_id, id, {layout.role}, time_created, {_FIELDS} FROM (
            SELECT m.*, {_DATA.format("m")} AS d FROM {layout.sessions} s JOIN {layout.messages} m ON m.id = (
                SELECT m.id FROM {layout.messages} m WHERE m.session_id = s.id {types} ORDER BY {order} LIMIT 1)
            WHERE {condition}) m"""
    return {str(row[0]): _message(row[1:]) for row in files.rows(path, query, values)}


class _Stored(Session):
    """One row of the table of sessions; turns are read when they are needed."""

    total: Usage = Usage()
    created: datetime | None = None
    updated: datetime | None = None
    is_archived: bool = False
    file_count: int | None = None

    @property
    def usage(self) -> Usage:
        return self.total


class OpencodeAdapter(SessionAdapter):
    """Reads opencode's database."""

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
        path = _database(folders)
        return (str(path),) if path is not None and path.is_file() else ()

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        found: dict[str, Loop] = {}
        self._places.clear()
        for path in _databases(files):
            for layout in _LAYOUTS:
                sessions = _read_sessions(files, path, layout)
                last = _read_last_messages(files, path, layout) if sessions else {}
                for session in sessions:
                    if session.id not in self._places and files.folders.contain(session.cwd):
                        self._places[session.id] = path, layout
                        loop = self._loop(files, session, last.get(session.id), moment)
                        found[loop.id] = loop
        return list(found.values())

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        id = loop.id.removeprefix("opencode:")
        path, layout = self._places.get(id) or _find(files, id)
        turns = _read_turns(files, path, layout, id, loop.cwd) if path is not None and layout is not None else []
        session = Session(id=id, turns=turns[-MAX_TURNS:], turn_count=len(turns[-MAX_TURNS:]))
        return self.session_details(loop, session, files)

    def notes(self, session: Session) -> Iterator[tuple[str, str]]:
        yield "last message", session.turn.text

    def facts(self, session: Session) -> Iterator[tuple[str, str]]:
        failed = sum(turn.failed for turn in session.turns)
        yield "session", session.id
        yield "failed commands", f"{failed:,}" if failed else ""

    def _loop(self, files: RunnerFiles, session: _Stored, last: Message | None, moment: Moment) -> Loop:
        key = session, last
        known = self._built.get(session.id)
        if known is not None and known[0] == key and known[1].status.ended:
            return known[1]
        path, layout = self._places[session.id]
        times = [time for time in (session.updated, last.at if last else None, session.created) if time is not None]
        activity = max((time for time in times if time <= moment.now), default=None)
        found = _status(last, moment.now - activity if activity is not None else LOST_AFTER)
        turns: list[Turn] = []
        if found.status.ended:
            turns = _read_turns(files, path, layout, session.id, session.cwd)[-MAX_TURNS:]
        loop = self.make_loop(
            session,
            found,
            activity,
            moment,
            files.shown(path),
            model=session.model or (last.model if last else ""),
            task=self._first_prompt(files, session, path, layout) or session.task,
            tags=(),
            raw_status=found.reason,
            archived=session.is_archived,
            iteration=len(turns) or None,
            started_at=session.created,
            last_result=turns[-1].text if turns else "",
            progress=_progress(session, turns),
        )
        self._built[session.id] = key, loop
        return loop

    def _first_prompt(self, files: RunnerFiles, session: _Stored, path: Path, layout: Layout) -> str:
        """Return a session's first prompt, read once; its title is generated."""
        if not self._prompts.get(session.id):
            turns = _read_turns(files, path, layout, session.id, session.cwd)
            prompt = next((turn.prompt for turn in turns if turn.prompt), "")
            self._prompts[session.id] = prompt[1:-1] if _RUN_PROMPT.fullmatch(prompt) else prompt
        return self._prompts[session.id]


def _database(folders: Folders) -> Path | None:
    home = folders.private("XDG_DATA_HOME", ".local/share")
    return home / "opencode" / "opencode.db" if home is not None else None


def _databases(files: RunnerFiles) -> list[Path]:
    path = _database(files.folders)
    return files.names(path.parent, "opencode*.db") if path is not None else []


def _find(files: RunnerFiles, id: str) -> tuple[Path, Layout] | tuple[None, None]:
    for path in _databases(files):
        for layout in _LAYOUTS:
            if read_table(files, path, layout.sessions, ("id",), {"id"}, ("id = ?", (id,))):
                return path, layout
    return None, None


def _read_sessions(files: RunnerFiles, path: Path, layout: Layout) -> list[_Stored]:
    where = _inside(files.folders.roots)
    rows = read_table(files, path, layout.sessions, _COLUMNS, _REQUIRED, where) or []
    sums: dict[str, Sequence[Any]] = {}
    if rows and "tokens_input" not in columns_of(files, path, layout.sessions):
        sums = _sum_messages(files, path)
    return [_session(row, sums.get(str(row[0]))) for row in rows if isinstance(row[0], str)]


def _session(row: Sequence[Any], sums: Sequence[Any] | None) -> _Stored:
    cost, *counts = row[5:11] if sums is None else sums
    given, answered, thought, read, written = map(_count, counts)
    answers = [count for count in (answered, thought) if count is not None]
    return _Stored(
        id=row[0][:MAX_LABEL],
        parent=cut(row[1], MAX_LABEL),
        cwd=cut(row[2]),
        task=cut(row[3]),
        model=_model(row[4]),
        total=Usage(
            input=given,
            output=sum(answers) if answers else None,
            reasoning=thought,
            cache_read=read,
            cache_write=written,
            cost_usd=float(cost) if isinstance(cost, int | float) and 0 < cost < _MAX_COUNT else None,
        ),
        created=_to_time(row[11]),
        updated=_to_time(row[12]),
        is_archived=bool(row[13]),
        file_count=_count(row[14]),
    )


def _model(value: Any) -> str:
    """Return the name of a model, which is a text or a JSON object."""
    try:
        found = msgspec.json.decode(value) if isinstance(value, str | bytes) else None
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return cut(value, MAX_LABEL)
    name = found.get("id") or found.get("modelID") if isinstance(found, dict) else found
    return cut(name, MAX_LABEL)


def _status(last: Message | None, quiet: timedelta) -> State:
    """Return status, opencode's own reason and source, as the last message shows."""
    if last is not None and last.role == "assistant":
        if last.error:
            status = LoopStatus.LIMIT if last.error in _LIMITS else LoopStatus.FAILED
            return State(
                LoopStatus.ABORTED if last.error in _ABORTED else status, last.error, source=StateSource.REPORTED
            )
        if last.completed is not None and last.finish not in _GOES_ON:
            reason = last.finish or "completed"
            if last.finish in _LIMITS or last.finish in _DONE:
                status = LoopStatus.LIMIT if last.finish in _LIMITS else LoopStatus.COMPLETED
                return State(status, reason, source=StateSource.REPORTED)
            return State(LoopStatus.UNKNOWN, reason)
    if last is None or quiet > LOST_AFTER:
        return State(LoopStatus.UNKNOWN)
    return State(LoopStatus.RUNNING, last.role)


def _progress(session: _Stored, turns: Sequence[Turn]) -> Progress:
    files = {file for turn in turns for file in turn.files}
    tests = [turn.test for turn in turns if turn.test is not None]
    return Progress(
        test_passed=tests[-1].has_passed if tests else None,
        files_changed=len(files) or session.file_count or None,
        changed_at=next((parse_time(turn.ended) for turn in reversed(turns) if turn.files), None),
    )


def _count(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and 0 <= value < _MAX_COUNT else None


def _read_turns(files: RunnerFiles, path: Path, layout: Layout, id: str, cwd: str) -> list[Turn]:
    """Return all turns of a session, oldest first."""
    query = f"""
        SELECT id, {layout.role}, time_created, {_FIELDS}
        FROM (SELECT m.*, {_DATA.format("m")} AS d FROM {layout.messages} m WHERE m.session_id = ?) m
        ORDER BY {layout.order}"""
    if not columns_of(files, path, layout.messages):
        return []
    parts: dict[str, list[Sequence[Any]]] = {}
    for row in files.rows(path, layout.parts, (id,)):
        parts.setdefault(str(row[0]), []).append(row[1:])
    turns: list[Turn] = []
    for message in map(_message, files.rows(path, query, (id,))):
        if message.role == "user":
            turns.append(Turn(started=iso(message.at) or "", prompt=_prompt(message, parts.get(message.id, ()))))
        elif message.role == "assistant":
            if not turns:
                turns.append(Turn(started=iso(message.at) or ""))
            _add_message(turns[-1], message, parts.get(message.id, ()), cwd)
    return turns


def _message(row: Sequence[Any]) -> Message:
    id, role, created, completed, error, reason, finish, model, text = row
    return Message(
        id=str(id),
        role=cut(role, MAX_LABEL),
        at=_to_time(created),
        completed=_to_time(completed),
        error=cut(error, MAX_LABEL),
        reason=cut(reason, MAX_MESSAGE),
        finish=cut(finish, MAX_LABEL),
        model=cut(model, MAX_LABEL),
        text=cut(text, MAX_TEXT),
    )


def _prompt(message: Message, parts: Iterable[Sequence[Any]]) -> str:
    texts = [cut(part[8]) for part in parts if part[0] == "text" and not part[9]]
    return cut(message.text or "\n".join(texts), MAX_TEXT)


def _add_message(turn: Turn, message: Message, parts: Iterable[Sequence[Any]], cwd: str) -> None:
    at = iso(message.completed or message.at) or ""
    for kind, tool, status, command, file, exit_code, error, output, text, _, old, new in parts:
        if kind == "text":
            turn.add_text(cut(text, MAX_MESSAGE))
            continue
        name = cut(tool, MAX_LABEL)
        turn.add_tool(name, is_change=name in _CHANGES)
        has_error = status == "error"
        code = exit_code if type(exit_code) is int else 1 if has_error else None
        if (command or has_error) and status in ("completed", "error"):
            note_command(turn, cut(command), code, cut(error) or cut(output), at)
        if name in _CHANGES and status == "completed" and (path := cut(file, MAX_LABEL)):
            name = path.removeprefix(f"{cwd}/")
            turn.add_file(name)
            turn.add_change(name, *(clip(text, _MAX_CODE) if isinstance(text, str) else "" for text in (old, new)))
    turn.ended = at
    turn.error, turn.error_kind = message.reason or message.error, message.error
    turn.end = message.error or (COMPLETE if message.completed is not None else "")


def _to_time(value: Any) -> datetime | None:
    """Return a time in milliseconds since 1970."""
    return utc(value) if isinstance(value, int | float) and value > 0 else None
