"""Adapter of Gemini CLI: its chats, with tokens (docs/adapter-files.md#gemini)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.records.loops import LoopStatus, StateSource
from core.sources.adapters.runner_files import MAX_LABEL, cut
from core.sources.adapters.sessions import Session, SessionAdapter, waiting_status
from core.sources.liveness import State

if TYPE_CHECKING:
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

_CHANGES: Final = frozenset({"write_file", "replace", "edit"})
_SHELL: Final = "run_shell_command"
_EXIT_CODE: Final = lazy_regex(rb"Exit Code: (-?\d{1,9})")
_LIMIT: Final = lazy_regex(r"quota|RESOURCE_EXHAUSTED|rate limit", re.IGNORECASE)
_CONTEXTS: Final = ("<hook_context>", "<session_context>")
_CANCELLED: Final = lazy_regex(r"(?:request )?cancel", re.IGNORECASE)


class _Arguments(Struct, gc=False):
    command: Raw = Raw()
    file_path: Raw = Raw()


class _Tool(Struct, gc=False, rename="camel"):
    id: str = ""
    name: str = ""
    status: str = ""
    args: _Arguments | None = None
    result: Raw = Raw()
    result_display: Raw = Raw()


class _Tokens(Struct, gc=False):
    input: int | None = None
    output: int | None = None
    cached: int | None = None
    thoughts: int | None = None


class _Line(Struct, gc=False, rename="camel"):
    session_id: str = ""
    start_time: str = ""
    kind: str = ""
    id: str = ""
    timestamp: str = ""
    type: str = ""
    model: str | None = None
    content: Raw = Raw()
    display_content: Raw = Raw()
    tool_calls: list[_Tool] | None = None
    tokens: _Tokens | None = None


_decode: Final = msgspec.json.Decoder(_Line).decode


class ChatFold:
    """Reads a chat line by line; a changed message is written again with its ID."""

    name = "gemini"
    version = 3
    state = Session

    def add(self, session: Session, line: bytes) -> None:
        entry = _decode(line)
        if entry.session_id and not session.id:
            session.id = entry.session_id[:MAX_LABEL]
            session.started = session.last = entry.start_time[:40]
        at = entry.timestamp[:40]
        if not entry.id or not entry.type:
            return
        session.last = at or session.last
        match entry.type:
            case "user":
                if text := cut(_prompt(entry)):  # else the results of tools
                    session.prompt(at, text)
            case "gemini":
                _add_answer(session, entry, at)
            case "error":
                session.fail(at, cut(_text(entry.content)))
            case "info" if _CANCELLED.match(cut(_text(entry.content))):
                session.stop(at, "cancelled")


def _add_answer(session: Session, entry: _Line, at: str) -> None:
    turn = session.say(at, cut(_text(entry.content)), is_last=not entry.tool_calls)
    session.model = clip(entry.model or session.model, MAX_LABEL)
    if entry.tokens is not None:
        session.spend(entry.id, (getattr(entry.tokens, name) for name in _Tokens.__struct_fields__))
    for tool in entry.tool_calls or ():
        turn.add_tool(tool.name[:MAX_LABEL], is_change=tool.name in _CHANGES)
        has_error = tool.status == "error"
        if not (has_error or tool.status == "success") or not session.is_new(tool.id):
            continue
        given = tool.args or _Arguments()
        if tool.name == _SHELL or has_error:
            code = _EXIT_CODE.search(bytes(tool.result))
            exit_code = int(code[1]) if code else int(has_error)
            session.ran(at, cut(_text(given.command)), exit_code, _text(tool.result_display))
        elif tool.name in _CHANGES and (file := cut(_text(given.file_path), MAX_LABEL)):
            session.edited(at, file)


def _text(raw: Raw) -> str:
    """Return a text, or those of the parts of a content."""
    value: Any = msgspec.json.decode(raw) if raw else ""
    if isinstance(value, list):
        return "\n".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _prompt(entry: _Line) -> str:
    """Return the user's text without contexts of hooks and Gemini CLI; "" if none."""
    value: Any = msgspec.json.decode(entry.display_content or entry.content or b'""')
    parts = value if isinstance(value, list) else [{"text": value}]
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if text.strip() and not text.startswith(_CONTEXTS))


class GeminiAdapter(SessionAdapter):
    """Reads `~/.gemini`."""

    name = "gemini"
    title = "Gemini CLI"
    versions = "0.20 to 0.60"
    contains = "sessions, subagents, turns, failed commands, tests, changed files, tokens"
    lacks = "cost, the end of a session, its process, how it was started"
    fold = ChatFold()

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        if (home := _home(folders)) is None:
            return ()
        own = (home / "tmp" / _folder_name(root) for root in folders.roots[:4])
        return tuple(str(path) for path in (*own, home / "projects.json") if path.exists())

    def transcripts(self, files: RunnerFiles) -> Iterator[tuple[Path, str, str]]:
        """Yield chats in folders named by a registry or a hash of the working folder."""
        if (home := _home(files.folders)) is None:
            return
        names = {_folder_name(root): str(root) for root in files.folders.roots}
        registry = files.json(home / "projects.json")
        projects = registry.get("projects") if isinstance(registry, dict) else None
        for cwd, name in projects.items() if isinstance(projects, dict) else ():
            if isinstance(name, str) and name and "/" not in name and files.folders.contain(cwd):
                names[name] = cwd
        for folder in files.names(home / "tmp"):
            for path in files.names(folder / "chats") if folder.name in names else ():
                cwd = names[folder.name]
                if path.suffix == ".jsonl":
                    yield path, cwd, ""
                elif not path.suffix:
                    yield from ((child, cwd, path.name) for child in files.names(path, "*.jsonl"))

    def status(self, session: Session, quiet: timedelta) -> State:
        if session.phase == "error":
            error = session.turn.error
            status = LoopStatus.LIMIT if _LIMIT.search(error) else LoopStatus.FAILED
            return State(status, error[:MAX_LABEL], source=StateSource.REPORTED)
        if session.phase == "cancelled":
            return State(LoopStatus.ABORTED, session.phase, source=StateSource.REPORTED)
        return waiting_status(session, quiet)


def _folder_name(root: Path) -> str:
    return sha256(str(root).encode()).hexdigest()


def _home(folders: Folders) -> Path | None:
    home = folders.private("GEMINI_CLI_HOME", "")
    return home / ".gemini" if home is not None else None
