"""Messages of opencode's sessions, in both layouts of its database (docs/adapter-files.md#opencode)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.adapters.runner_files import utc
from core.adapters.sessions import COMPLETE, Turn, note_command
from core.adapters.tables import columns_of
from core.adapters.values import MAX_LABEL, clip, cut
from core.records.times import iso

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles

MAX_TURNS: Final = 100  # the last ones
_MAX_MESSAGE: Final = 600
_MAX_PROMPT: Final = 4_000
_MAX_CODE: Final = 600
_CHANGES: Final = frozenset({"edit", "write", "multiedit", "patch", "apply_patch"})
_DATA: Final = "CASE WHEN json_valid({0}.data) THEN {0}.data ELSE '{{}}' END"
_INSIDE: Final = "(directory = ? OR substr(directory, 1, ?) = ?)"


class Layout(Struct, frozen=True):
    """Tables and queries of one layout; `fields` are those of a message, `parts` those of a session's parts."""

    sessions: str
    messages: str
    role: str
    order: str
    parts: str


class Message(Struct, frozen=True, gc=False):
    """One message: `finish` is why an agent's message ended, `error` the name of its error."""

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
LAYOUTS: Final = (_NEW, _OLD)
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


def inside(roots: Sequence[Path]) -> tuple[str, list[Any]]:
    """Return the condition, and its values, that the folder of a session is in one of the roots."""
    values = [value for root in map(str, roots) for value in (root, len(root) + 1, f"{root}/")]
    return " OR ".join([_INSIDE] * len(roots)) or "0", values


def sum_messages(files: RunnerFiles, path: Path) -> dict[str, Sequence[Any]]:
    """Return cost and tokens by session, for versions without these columns in the table of sessions."""
    condition, values = inside(files.folders.roots)
    return {str(row[0]): row[1:] for row in files.rows(path, _SUMS.replace(":condition:", condition), values)}


def read_last_messages(files: RunnerFiles, path: Path, layout: Layout) -> dict[str, Message]:
    """Return the last message of each session in the project."""
    if not columns_of(files, path, layout.messages):
        return {}
    condition, values = inside(files.folders.roots)
    types = "AND m.type IN ('user', 'assistant')" if layout is _NEW else ""
    order = ", ".join(f"{name} DESC" for name in layout.order.split(", "))
    query = f"""
        SELECT session_id, id, {layout.role}, time_created, {_FIELDS} FROM (
            SELECT m.*, {_DATA.format("m")} AS d FROM {layout.sessions} s JOIN {layout.messages} m ON m.id = (
                SELECT m.id FROM {layout.messages} m WHERE m.session_id = s.id {types} ORDER BY {order} LIMIT 1)
            WHERE {condition}) m"""
    return {str(row[0]): _message(row[1:]) for row in files.rows(path, query, values)}


def read_turns(files: RunnerFiles, path: Path, layout: Layout, id: str, cwd: str) -> list[Turn]:
    """Return the last turns of a session; each begins with a message of the user."""
    return read_all_turns(files, path, layout, id, cwd)[-MAX_TURNS:]


def read_all_turns(files: RunnerFiles, path: Path, layout: Layout, id: str, cwd: str) -> list[Turn]:
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
        at=to_time(created),
        completed=to_time(completed),
        error=cut(error, MAX_LABEL),
        reason=cut(reason, _MAX_MESSAGE),
        finish=cut(finish, MAX_LABEL),
        model=cut(model, MAX_LABEL),
        text=cut(text, _MAX_PROMPT),
    )


def _prompt(message: Message, parts: Iterable[Sequence[Any]]) -> str:
    texts = [cut(part[8]) for part in parts if part[0] == "text" and not part[9]]
    return cut(message.text or "\n".join(texts), _MAX_PROMPT)


def _add_message(turn: Turn, message: Message, parts: Iterable[Sequence[Any]], cwd: str) -> None:
    at = iso(message.completed or message.at) or ""
    for kind, tool, status, command, file, exit_code, error, output, text, _, old, new in parts:
        if kind == "text":
            turn.add_text(cut(text, _MAX_MESSAGE))
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


def to_time(value: Any) -> datetime | None:
    """Return a time in milliseconds since 1970."""
    return utc(value) if isinstance(value, int | float) and value > 0 else None
