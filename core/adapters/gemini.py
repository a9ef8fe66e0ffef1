"""Adapter of Gemini CLI: its chats, with tokens (docs/adapter-files.md#gemini)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct

from core.adapters.beads import closed_issues
from core.adapters.contract import Places
from core.adapters.session_turns import COMPLETE, TestRun, Turn, can_change_files, make_iteration, note_command
from core.adapters.values import MAX_LABEL, MAX_TEXT, clip, cut
from core.base.regexes import lazy_regex
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, Progress, StateSource, Usage
from core.records.times import parse_time
from core.sources.liveness import check_liveness

if TYPE_CHECKING:
    from core.adapters.contract import Delivery, Folders, Moment
    from core.adapters.runner_files import Folded, RunnerFiles
    from core.records.lessons import Lesson

QUIET_AFTER: Final = timedelta(minutes=10)
LOST_AFTER: Final = timedelta(days=1)
MAX_TURNS: Final = 50
_MAX_RECENT: Final = 16  # messages that may be written again
_MAX_CALLS: Final = 64
_MAX_COUNT: Final = 1 << 53
_MAX_MESSAGE: Final = 600
_CHANGES: Final = frozenset({"write_file", "replace", "edit"})
_SHELL: Final = "run_shell_command"
_EXIT_CODE: Final = lazy_regex(rb"Exit Code: (-?\d{1,9})")
_LIMIT: Final = lazy_regex(r"quota|RESOURCE_EXHAUSTED|rate limit", re.IGNORECASE)
_CONTEXTS: Final = ("<hook_context>", "<session_context>")
_CANCELLED: Final = lazy_regex(r"(?:request )?cancel", re.IGNORECASE)


class Chat(Struct):
    """What a chat shows; times are as written."""

    id: str = ""
    started: str = ""
    last: str = ""
    kind: str = ""
    model: str = ""
    task: str = ""
    phase: str = ""  # prompt, work, answer, error or cancelled
    turns: list[Turn] = []
    turn_count: int = 0
    tokens: list[int] = []  # input, output, cached and thoughts, of messages that are not in `recent`
    recent: dict[str, list[int]] = {}  # tokens of the last messages, by ID
    calls: list[str] = []  # IDs of the last tool calls that were noted
    files: list[str] = []
    has_other_changes: bool = False
    test: TestRun | None = None
    changed: str = ""


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
    """Reads a chat line by line; a message that changed is written again with the same ID."""

    name = "gemini"
    version = 2
    state = Chat

    def add(self, state: Chat, line: bytes) -> None:
        found = _decode(line)
        if found.session_id and not state.id:
            state.id, state.kind = found.session_id[:MAX_LABEL], found.kind[:MAX_LABEL]
            state.started = state.last = found.start_time[:40]
        at = found.timestamp[:40]
        if not found.id or not found.type:
            return
        state.last = at or state.last
        text = cut(_text(found.content))
        if found.type == "user":
            text = cut(_prompt(found))
            if not text:  # results of tools
                return
            state.turns.append(Turn(started=at, prompt=clip(text, _MAX_MESSAGE)))
            state.turn_count += 1
            del state.turns[:-MAX_TURNS]
            state.task, state.phase = state.task or text, "prompt"
        elif found.type == "gemini":
            _add_answer(state, found, text, at)
        elif found.type == "error":
            turn = _turn(state, at)
            turn.error, turn.ended, state.phase = clip(text, _MAX_MESSAGE) or "error", at, "error"
        elif found.type == "info" and _CANCELLED.match(text):
            turn = _turn(state, at)
            turn.end, turn.ended, state.phase = "cancelled", at, "cancelled"


def _turn(state: Chat, at: str) -> Turn:
    if not state.turns:
        state.turns.append(Turn(started=at))
        state.turn_count += 1
    return state.turns[-1]


def _add_answer(state: Chat, found: _Line, text: str, at: str) -> None:
    turn = _turn(state, at)
    turn.add_text(clip(text, _MAX_MESSAGE))
    turn.ended = at
    state.model = clip(found.model or state.model, MAX_LABEL)
    state.phase = "work" if found.tool_calls else "answer"
    turn.end = COMPLETE if state.phase == "answer" else ""
    if found.tokens is not None:
        counts = [min(max(getattr(found.tokens, name) or 0, 0), _MAX_COUNT) for name in _Tokens.__struct_fields__]
        state.recent.pop(found.id, None)
        state.recent[found.id[:MAX_LABEL]] = counts
        if len(state.recent) > _MAX_RECENT:
            oldest = state.recent.pop(next(iter(state.recent)))
            state.tokens = [sum(pair) for pair in zip(state.tokens or [0] * len(oldest), oldest, strict=True)]
    for tool in found.tool_calls or ():
        turn.add_tool(tool.name[:MAX_LABEL], is_change=tool.name in _CHANGES)
        if tool.status in ("success", "error") and tool.id not in state.calls:
            state.calls.append(tool.id[:MAX_LABEL])
            del state.calls[:-_MAX_CALLS]
            _note_tool(state, turn, tool, at)


def _note_tool(state: Chat, turn: Turn, tool: _Tool, at: str) -> None:
    arguments = tool.args or _Arguments()
    has_error = tool.status == "error"
    if tool.name == _SHELL or has_error:
        command = cut(_text(arguments.command))
        code = _EXIT_CODE.search(bytes(tool.result))
        exit_code = int(code[1]) if code else int(has_error)
        note_command(turn, command, exit_code, _text(tool.result_display), at)
        state.has_other_changes = state.has_other_changes or (not exit_code and can_change_files(command))
        state.test = turn.test or state.test
    elif tool.name in _CHANGES and (file := cut(_text(arguments.file_path), MAX_LABEL)):
        turn.add_file(file)
        if file not in state.files and len(state.files) < _MAX_CALLS:
            state.files.append(file)
        state.changed = at


def _text(raw: Raw) -> str:
    """Return a text, or those of the parts of a content."""
    value: Any = msgspec.json.decode(raw) if raw else ""
    if isinstance(value, list):
        return "\n".join(str(part.get("text", "")) for part in value if isinstance(part, dict))
    return value if isinstance(value, str) else ""


def _prompt(found: _Line) -> str:
    """Return what the user wrote, without the contexts that hooks and Gemini CLI add; "" if that is nothing."""
    value: Any = msgspec.json.decode(found.display_content or found.content or b'""')
    parts = value if isinstance(value, list) else [{"text": value}]
    texts = [str(part.get("text", "")) for part in parts if isinstance(part, dict)]
    return "\n".join(text for text in texts if text.strip() and not text.startswith(_CONTEXTS))


_FOLD: Final = ChatFold()


class GeminiAdapter:
    """Reads `~/.gemini`; see `core.adapters.contract.Adapter`."""

    name = "gemini"
    title = "Gemini CLI"
    versions = "0.20 to 0.60"
    contains = "sessions, subagents, turns, failed commands, tests, changed files, tokens"
    lacks = "cost, the end of a session, its process, how it was started"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        home = _home(folders)
        found = [home / "tmp" / sha256(str(root).encode()).hexdigest() for root in folders.roots[:4]] if home else []
        registry = [home / "projects.json"] if home else []
        return tuple(str(path) for path in (*found, *registry) if path.exists())

    def places(self, folders: Folders) -> Places:
        home = _home(folders)
        return Places(polled=(home / "tmp", home / "projects.json")) if home is not None else Places()

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        home = _home(files.folders)
        found: dict[str, Loop] = {}
        for folder, cwd in _project_folders(files, home) if home is not None else ():
            for path, parent in _chats(files, folder):
                folded = files.fold(path, _FOLD)
                if folded is not None and folded.state.id:
                    loop = _build_loop(folded, cwd, parent, moment, files.shown(path))
                    found[loop.id] = loop
        return list(found.values())

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        home = files.folders.home
        shown = loop.files[0] if loop.files else ""
        path = home / shown[2:] if home is not None and shown.startswith("~/") else Path(shown)
        folded = files.fold(path, _FOLD)
        if folded is None:
            return LoopDetails(loop_id=loop.id)
        state: Chat = folded.state
        first = state.turn_count - len(state.turns) + 1
        return LoopDetails(
            loop_id=loop.id,
            iterations=tuple(make_iteration(number, turn) for number, turn in enumerate(state.turns, start=first)),
            facts=(("session", state.id), *closed_issues(files, loop.session_ids)),
        )

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        return ()

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        return None


def _home(folders: Folders) -> Path | None:
    home = folders.private("GEMINI_CLI_HOME", "")
    return home / ".gemini" if home is not None else None


def _project_folders(files: RunnerFiles, home: Path) -> Iterator[tuple[Path, str]]:
    """Yield the folders of the project's chats, with the working folder: named by a hash of it, or in a registry."""
    names = {sha256(str(root).encode()).hexdigest(): str(root) for root in files.folders.roots}
    registry = files.json(home / "projects.json") if files.exists(home / "projects.json") else None
    projects = registry.get("projects") if isinstance(registry, dict) else None
    for cwd, name in projects.items() if isinstance(projects, dict) else ():
        if isinstance(name, str) and name and "/" not in name and files.folders.contain(cwd):
            names[name] = cwd
    for folder in files.names(home / "tmp"):
        if folder.name in names:
            yield folder, names[folder.name]


def _chats(files: RunnerFiles, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield the chats of a folder, with the ID of the parent of a subagent."""
    for path in files.names(folder / "chats"):
        if path.suffix == ".jsonl":
            yield path, ""
        elif not path.suffix:
            yield from ((child, path.name) for child in files.names(path, "*.jsonl"))


def _build_loop(folded: Folded, cwd: str, parent: str, moment: Moment, file: str) -> Loop:
    state: Chat = folded.state
    last = parse_time(state.last)
    activity = last if last is not None and last <= moment.now else min(folded.stamp.modified_at, moment.now)
    turn = state.turns[-1] if state.turns else Turn()
    status, reason, source = _status(state, turn, moment.now - activity)
    liveness, why = check_liveness(status, None, activity, None, moment.now, QUIET_AFTER, moment.processes)
    return Loop(
        id=f"gemini:{state.id}",
        runner="gemini",
        sources=("gemini",),
        owner="gemini",
        model=state.model,
        task=clip(state.task, MAX_TEXT),
        tags=("subagent",) if parent else (),
        status=status,
        raw_status=state.phase,
        state_source=source,
        end_reason=reason if status.ended else "",
        liveness=liveness,
        liveness_reason=why,
        badges=("stale",) if liveness is Liveness.STALE else (),
        iteration=state.turn_count or None,
        started_at=parse_time(state.started),
        ended_at=activity if status.ended else None,
        updated_at=activity,
        last_activity=activity,
        modified_at=folded.stamp.modified_at,
        last_result=turn.text,
        usage=_usage(state),
        parent=f"gemini:{parent}" if parent else "",
        session_ids=(state.id,),
        files=(file,),
        cwd=cwd,
        progress=Progress(
            test_passed=state.test.has_passed if state.test is not None else None,
            files_changed=len(state.files) or None,
            changed_at=parse_time(state.changed),
        ),
    )


def _status(state: Chat, turn: Turn, quiet: timedelta) -> tuple[LoopStatus, str, StateSource]:
    if state.phase == "error":
        status = LoopStatus.LIMIT if _LIMIT.search(turn.error) else LoopStatus.FAILED
        return status, turn.error[:MAX_LABEL], StateSource.REPORTED
    if state.phase == "cancelled":
        return LoopStatus.ABORTED, state.phase, StateSource.REPORTED
    if state.phase == "answer":
        is_over = quiet > QUIET_AFTER
        return LoopStatus.COMPLETED if is_over else LoopStatus.PAUSED, state.phase, StateSource.INFERRED
    is_known = bool(state.phase) and quiet <= LOST_AFTER
    return LoopStatus.RUNNING if is_known else LoopStatus.UNKNOWN, "", StateSource.INFERRED


def _usage(state: Chat) -> Usage:
    """Return the sum of all messages; the cached tokens are a part of the input, and thoughts are separate."""
    counts = [*state.recent.values(), *([state.tokens] if state.tokens else ())]
    if not counts:
        return Usage()
    given, output, cached, thoughts = (sum(column) for column in zip(*counts, strict=True))
    return Usage(input=max(given - cached, 0), output=output + thoughts, cache_read=cached, reasoning=thoughts)
