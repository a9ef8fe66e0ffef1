"""Adapter of Codex, whose transcripts are rollouts; docs/adapter-files.md#codex."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.base.shell_commands import is_test_run
from core.base.steps import group_pairs
from core.records.loops import Liveness, Loop, LoopDetails, LoopStatus, StateSource, Usage
from core.records.times import minute_of, parse_time
from core.sources.adapters.join import HEADLESS, INTERACTIVE
from core.sources.adapters.runner_files import MAX_LABEL, MAX_TEXT, read_table, utc
from core.sources.adapters.sessions import (
    COMPLETE,
    LOST_AFTER,
    MAX_DIFF,
    MAX_FILES,
    MAX_MESSAGE,
    QUIET_AFTER,
    BareLoops,
    Session,
    SessionAdapter,
    Turn,
    can_change_files,
    join_sessions,
)
from core.sources.liveness import State

if TYPE_CHECKING:
    from core.records.reflections import Lesson
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.memories import MemoryReader
    from core.sources.adapters.runner_files import Folded, RunnerFiles

_MAX_CALLS: Final = 32  # commands without a result
_MAX_COUNT: Final = 1 << 53
_MAX_PATCH: Final = 200_000
_COPY_TIME: Final = timedelta(seconds=2)  # in which a fork writes its copy of the history of another session
_SHELLS: Final = frozenset({"exec_command", "shell", "shell_command", "container.exec", "local_shell"})
_EXIT_CODE: Final = lazy_regex(rb'(?:[Ee]xit(?:ed with)? code:? |\\?"exit_code\\?": ?)(-?\d{1,9})')
_HEAD_BYTES: Final = 600
_OUTPUT: Final = "Output:\n"
_CONTEXT: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""Begin messages that Codex writes before the first prompt in old versions."""
_SCRIPT_FAILED: Final = "Script failed"
_VERSION_7: Final = lazy_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-.{17}")  # a UUID that begins with its time
_BEGINNINGS: Final = frozenset({"task_started", "turn_started", "user_message", "item_completed"})
_PATCH: Final = lazy_regex(r"\*\*\* (?:Add|Update|Delete) File: ([^\n\\\"]{1,300})")
_FILE_LINE: Final = lazy_regex(r"\*\*\* (Add|Update|Delete) File: (.{1,300})")
_SCRIPT: Final = frozenset({"-c", "-lc", "-ic", "/c"})


class Tokens(Struct, array_like=True, gc=False):
    """Cumulative token counts; `cached` is part of `input`, `reasoning` of `output`."""

    input: int = 0
    cached: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0


class Goal(Struct, array_like=True, gc=False):
    """Goal of a session, and its status in the words of Codex."""

    objective: str = ""
    status: str = ""
    updated_ms: float = 0


class Call(Struct, array_like=True):
    """A command or patch without a result yet."""

    command: str = ""
    files: list[str] = []
    exit_code: int | None = None


class Rollout(Session):
    """A session from its rollout; work after the end of a turn begins another turn."""

    source: str = ""  # cli, vscode, exec, mcp or subagent
    version: str = ""
    branch: str = ""
    forked_from: str = ""  # session whose history this one continues
    is_copy: bool = False  # the lines are a copy of the history of another session
    copied: Tokens | None = None  # of that history
    total: Tokens | None = None
    goal: Goal | None = None
    commands: int = 0
    failures: int = 0
    compactions: int = 0
    calls: dict[str, Call] = {}

    def open_turn(self, at: str) -> Turn:
        return self.turns[-1] if self.turns and not self.turns[-1].end else self.begin_turn(at)

    def end_turn(self, at: str, end: str) -> None:
        for call in self.calls.values():
            if call.exit_code is not None:
                self.finish(at, call, call.exit_code, "")
        self.calls.clear()
        self.turns[-1].end, self.turns[-1].ended = end, at

    def finish(self, at: str, call: Call, exit_code: int | None, output: str) -> None:
        """Note the result of a command or patch."""
        tests_failed = self.test is not None and not self.test.has_passed
        has_failed = self.ran(at, call.command, exit_code, output)
        self.commands += bool(call.command)
        self.failures += has_failed
        if not has_failed:
            for file in call.files:
                self.edited(at, file)
            if "git commit" in call.command and can_change_files(call.command):
                self.changed = at
        if tests_failed and exit_code == 0 and is_test_run(call.command):
            self.changed = at

    def ask(self, at: str, text: str) -> None:
        """Note a prompt in the turn started for it; ignore what Codex itself writes."""
        if text.startswith(_CONTEXT):
            return
        turn = self.open_turn(at)
        if not turn.is_reported and (turn.text or turn.tools):  # versions that write no starts and ends
            self.end_turn(at, "next prompt")
            turn = self.open_turn(at)
        turn.prompt = turn.prompt or clip(text, MAX_MESSAGE)
        self.task = self.task or text

    @property
    def usage(self) -> Usage:
        """The usage without that of the session whose history was copied."""
        own, copied = self.total, self.copied
        if own is None:
            return Usage()
        if copied is not None and own.input >= copied.input and own.output >= copied.output:
            names = Tokens.__struct_fields__
            own = Tokens(*(max(getattr(own, name) - getattr(copied, name), 0) for name in names))
        return Usage(
            input=max(own.input - own.cached - own.cache_write, 0),
            output=own.output,
            cache_read=own.cached,
            cache_write=own.cache_write or None,
            reasoning=own.reasoning,
        )


class Git(Struct, gc=False):
    branch: str | None = None


class SessionMeta(Struct, gc=False):
    id: str
    cwd: str = ""
    timestamp: str = ""
    cli_version: str | None = None
    source: Raw = Raw()
    parent_thread_id: str | None = None
    forked_from_id: str | None = None
    git: Git | None = None


class MetaLine(Struct, gc=False):
    payload: SessionMeta
    type: str = ""


class Payload(Struct, gc=False):
    type: str = ""
    turn_id: str | None = None
    call_id: str | None = None
    name: Raw = Raw()
    arguments: Raw = Raw()
    input: Raw = Raw()
    action: Raw = Raw()
    output: Raw = Raw()
    message: Raw = Raw()
    last_agent_message: Raw = Raw()
    reason: Raw = Raw()
    error: Raw = Raw()
    codex_error_info: Raw = Raw()
    info: Raw = Raw()
    goal: Raw = Raw()
    item: Raw = Raw()
    changes: Raw = Raw()
    success: Raw = Raw()
    exit_code: int | None = None
    aggregated_output: Raw = Raw()
    model: Raw = Raw()


class RolloutLine(Struct, gc=False):
    payload: Payload
    timestamp: str = ""
    type: str = ""


class Counts(Struct, gc=False):
    input_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_input_tokens: int = 0
    output_tokens: int = 0
    reasoning_output_tokens: int = 0


class TokenInfo(Struct, gc=False):
    total_token_usage: Counts | None = None


_decode_line: Final = msgspec.json.Decoder(RolloutLine).decode
_decode_meta: Final = msgspec.json.Decoder(MetaLine).decode
_decode_tokens: Final = msgspec.json.Decoder(TokenInfo | None).decode
_decode_any: Final = msgspec.json.Decoder().decode


class RolloutFold:
    """Reads a rollout line by line; see `core.sources.adapters.runner_files.Fold`."""

    name = "codex"
    version = 4
    state = Rollout

    def add(self, state: Rollout, line: bytes) -> None:
        entry = _decode_line(line)
        payload = entry.payload
        if entry.type == "session_meta":
            _begin(state, _decode_meta(line).payload, entry.timestamp)
            return
        at = entry.timestamp[:40]
        if state.is_copy and _is_copied(state, payload, at):
            if payload.type == "token_count":
                state.copied = _read_tokens(payload.info) or state.copied
            return
        state.last = at or state.last
        if entry.type == "event_msg" or entry.type == "response_item":
            _add(state, payload, at)
        elif entry.type == "turn_context":
            state.model = _text_of(payload.model, MAX_LABEL) or state.model
        elif entry.type == "compacted":
            state.compactions += 1


def _begin(state: Rollout, meta: SessionMeta, at: str) -> None:
    id = meta.id[:MAX_LABEL]
    if state.id:
        if id != state.id and not state.turn_count:  # the history of another session follows
            state.is_copy = True
            state.forked_from = state.forked_from or id
        return
    source = _decode_any(meta.source) if meta.source else ""
    subagent = source.get("subagent") if isinstance(source, dict) else None
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    parent = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    state.id, state.cwd = id, meta.cwd[:MAX_TEXT]
    state.started = state.last = (meta.timestamp or at)[:40]
    state.source = source[:MAX_LABEL] if isinstance(source, str) else "subagent" if isinstance(source, dict) else ""
    state.version = (meta.cli_version or "")[:MAX_LABEL]
    state.branch = clip(meta.git.branch or "", MAX_LABEL) if meta.git is not None else ""
    state.parent = (meta.parent_thread_id or (parent if isinstance(parent, str) else ""))[:MAX_LABEL]
    state.forked_from = (meta.forked_from_id or "")[:MAX_LABEL]
    state.is_copy = bool(state.parent or state.forked_from)


def _is_copied(state: Rollout, payload: Payload, at: str) -> bool:
    """Return whether a line is a copy; copies end with the first own turn or prompt.

    The copy has the times of the original lines or of the fork. Newer versions have IDs that begin with their time.
    """
    if payload.type not in _BEGINNINGS:
        return True
    turn = payload.turn_id or ""
    if _VERSION_7.fullmatch(turn) and _VERSION_7.fullmatch(state.id):
        state.is_copy = turn[:13] < state.id[:13]
        return state.is_copy
    time, started = parse_time(at), parse_time(state.started)
    if time is not None and started is not None:
        state.is_copy = time <= started + _COPY_TIME if state.forked_from else time < started
    return state.is_copy


def _add(state: Rollout, payload: Payload, at: str) -> None:
    """Add an event, or an item of the conversation; other types mean nothing here."""
    match payload.type:
        case "function_call" | "custom_tool_call" | "local_shell_call":
            _note_call(state, payload, at)
        case "function_call_output" | "custom_tool_call_output":
            _note_output(state, payload, at)
        case "token_count":
            state.total = _read_tokens(payload.info) or state.total
        case "agent_message":
            state.open_turn(at).add_text(_text_of(payload.message, MAX_MESSAGE))
        case "user_message":
            state.ask(at, _text_of(payload.message, MAX_TEXT))
        case "item_completed":
            _complete_item(state, payload, at)
        case "exec_command_end":
            _end_command(state, payload, at)
        case "patch_apply_end":
            changes = _decode_any(payload.changes) if payload.changes else None
            if bytes(payload.success) == b"true" and isinstance(changes, dict):
                for file in changes:
                    state.edited(at, file)
        case "task_started" | "turn_started":
            if state.turns and not state.turns[-1].end:
                state.end_turn(at, "interrupted")
            turn = state.open_turn(at)
            turn.id, turn.is_reported = (payload.turn_id or "")[:MAX_LABEL], True
        case "task_complete" | "turn_complete":
            turn = state.open_turn(at)
            turn.add_text(_text_of(payload.last_agent_message, MAX_MESSAGE))
            error = _decode_any(payload.error) if payload.error else None
            if isinstance(error, dict):
                turn.error = clip(str(error.get("message") or "error"), MAX_MESSAGE)
                turn.error_kind = _error_kind(error.get("codex_error_info"))
            state.end_turn(at, COMPLETE)
        case "turn_aborted":
            state.open_turn(at)
            state.end_turn(at, _text_of(payload.reason, MAX_LABEL) or "turn_aborted")
        case "error":
            turn = state.open_turn(at)
            turn.error = _text_of(payload.message, MAX_MESSAGE) or "error"
            turn.error_kind = _error_kind(_decode_any(payload.codex_error_info) if payload.codex_error_info else None)
        case "thread_goal_updated":
            goal = _decode_any(payload.goal)
            if isinstance(goal, dict):
                updated = parse_time(at)
                state.goal = Goal(
                    objective=clip(str(goal.get("objective") or ""), MAX_TEXT),
                    status=normalize_status(goal.get("status")),
                    updated_ms=updated.timestamp() * 1000 if updated is not None else 0,
                )


def _note_call(state: Rollout, payload: Payload, at: str) -> None:
    """Note a call of a tool: a command, a patch, or another one by its name only."""
    name = _text_of(payload.name, MAX_LABEL) or "local_shell"
    turn = state.open_turn(at)
    given = _text_of(payload.arguments) or _text_of(payload.input)
    call = Call(files=_patched_files(given))
    turn.add_tool(name, is_change=bool(call.files))
    if call.files and turn.failures and len(turn.diff) < MAX_DIFF:
        turn.diff = clip(f"{turn.diff}{_clean_patch(given)}", MAX_DIFF)
    if name in _SHELLS:
        call.command = _parse_command(given or bytes(payload.action))
    if payload.call_id and (call.command or call.files):
        state.calls[payload.call_id[:MAX_LABEL]] = call
        while len(state.calls) > _MAX_CALLS:
            del state.calls[next(iter(state.calls))]


def _note_output(state: Rollout, payload: Payload, at: str) -> None:
    call = state.calls.pop(payload.call_id or "", None)
    if call is None:
        return
    output = memoryview(payload.output)
    head = bytes(output[:_HEAD_BYTES])
    found = _EXIT_CODE.search(head.partition(b"Output:")[0]) or _EXIT_CODE.search(bytes(output[-_HEAD_BYTES // 2 :]))
    exit_code = call.exit_code if call.exit_code is not None or found is None else int(found[1])
    is_read = bool(exit_code) or is_test_run(call.command) or (exit_code is None and bool(call.files))
    text = _text_of_output(_decode_any(payload.output)) if is_read and payload.output else ""
    if exit_code is None and text.startswith(_SCRIPT_FAILED):
        exit_code = 1
    state.finish(at, call, exit_code, text.rpartition(_OUTPUT)[2])


def _end_command(state: Rollout, payload: Payload, at: str) -> None:
    """Note the end of a command; its output is here or in the tool output's line."""
    call = state.calls.get(payload.call_id or "")
    if call is None:
        return
    call.exit_code = payload.exit_code
    if payload.aggregated_output:
        del state.calls[payload.call_id or ""]
        state.finish(at, call, payload.exit_code, _text_of(payload.aggregated_output))


def _complete_item(state: Rollout, payload: Payload, at: str) -> None:
    """An item of newer versions: a prompt, a message, a command or a change of files."""
    item = _decode_any(payload.item)
    kind = str(item.get("type", "")).lower()
    if kind == "usermessage":
        state.ask(at, clip(_text_of_output(item.get("content")), MAX_TEXT))
    elif kind == "agentmessage":
        state.open_turn(at).add_text(clip(_text_of_output(item.get("content")), MAX_MESSAGE))
    elif kind == "commandexecution" and type(item.get("exit_code")) is int:
        call = state.calls.pop(str(item.get("id")), Call(command=_join_words(item.get("command"))))
        state.finish(at, call, item["exit_code"], str(item.get("aggregated_output") or ""))
    elif kind == "filechange" and isinstance(item.get("changes"), dict) and item.get("status") != "failed":
        for file in item["changes"]:
            state.edited(at, file)


def read_meta(line: bytes) -> tuple[str, str]:
    """Return ID and working folder from a rollout's first line; "" if missing."""
    try:
        found = _decode_meta(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return "", ""
    return (found.payload.id, found.payload.cwd) if found.type == "session_meta" else ("", "")


def _read_tokens(info: Raw) -> Tokens | None:
    found = _decode_tokens(info) if info else None
    counts = found.total_token_usage if found is not None else None
    if counts is None:
        return None
    return Tokens(*(min(max(getattr(counts, name), 0), _MAX_COUNT) for name in counts.__struct_fields__))


def _error_kind(info: Any) -> str:
    """Return the name of a kind of error, which is a text or the key of an object."""
    return str(next(iter(info), "") if isinstance(info, dict) else info or "")[:MAX_LABEL]


def normalize_status(status: object) -> str:
    """Return a goal's status in snake case, as in the database: `budget_limited`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(status or "")[:MAX_LABEL]).lower()


def _patched_files(text: str) -> list[str]:
    return list(dict.fromkeys(_PATCH.findall(text[:_MAX_PATCH])))[:MAX_FILES] if "*** " in text else []


def _clean_patch(patch: str) -> str:
    """Return a patch of Codex with the headers of a unified diff."""
    start = patch.find("*** ")
    lines = (_header(line) for line in patch[start : start + MAX_DIFF].splitlines())
    return "".join(f"{line}\n" for line in lines if not line.startswith("*** "))


def _header(line: str) -> str:
    found = _FILE_LINE.fullmatch(line)
    if found is None:
        return line
    old = "/dev/null" if found[1] == "Add" else f"a/{found[2]}"
    new = "/dev/null" if found[1] == "Delete" else f"b/{found[2]}"
    return f"--- {old}\n+++ {new}"


def _parse_command(arguments: str | bytes) -> str:
    """Return the command in the arguments of a shell tool."""
    found = _decode_any(arguments)
    return _join_words(found.get("cmd") or found.get("command")) if isinstance(found, dict) else ""


def _join_words(command: object) -> str:
    """Return a command, given as text or as words; the last may be a shell script."""
    if isinstance(command, list):
        words = [str(word) for word in command]
        return clip(words[2] if len(words) == 3 and words[1] in _SCRIPT else " ".join(words), MAX_TEXT)
    return clip(command, MAX_TEXT) if isinstance(command, str) else ""


def _text_of_output(value: Any) -> str:
    """Return the text of an output or of a message's content."""
    if isinstance(value, str):
        if not value.startswith('{"'):
            return value
        try:
            inner = _decode_any(value)
        except (msgspec.MsgspecError, ValueError):
            return value
        return str(inner.get("output", value)) if isinstance(inner, dict) else value
    if isinstance(value, dict):
        return _text_of_output(value.get("content") or value.get("text") or "")
    return (
        "\n".join(str(one.get("text", "")) for one in value if isinstance(one, dict)) if isinstance(value, list) else ""
    )


def _text_of(raw: Raw, limit: int | None = None) -> str:
    value = _decode_any(raw) if raw else ""
    return value[:limit].strip() if isinstance(value, str) else ""


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

    def status(self, session: Rollout, quiet: timedelta) -> State:
        turn = session.turns[-1] if session.turns else None
        if turn is None:
            return State(LoopStatus.UNKNOWN)
        if turn.error and turn.end in ("", COMPLETE):
            status = LoopStatus.LIMIT if turn.error_kind in _LIMITS else LoopStatus.FAILED
            return State(status, clip(turn.error_kind or turn.error, MAX_LABEL), source=StateSource.REPORTED)
        if turn.end == COMPLETE and _is_interactive(session) and quiet <= QUIET_AFTER:
            return State(LoopStatus.PAUSED)  # the person may go on
        if turn.end:
            return State(_ENDS.get(turn.end, LoopStatus.UNKNOWN), turn.end, source=StateSource.REPORTED)
        if turn.is_reported and quiet <= LOST_AFTER:
            return State(LoopStatus.RUNNING, "", source=StateSource.REPORTED)
        return State(LoopStatus.RUNNING if quiet <= QUIET_AFTER else LoopStatus.UNKNOWN)

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
            from core.sources.adapters.memories import MemoryReader  # not needed for lists of loops

            self._memories = MemoryReader()
        return self._memories.read(files, home)

    # Parts

    def _own_rollouts(self, files: RunnerFiles, home: Path) -> Iterator[Path]:
        """Yield the rollouts of sessions in the project; read each first line once."""
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
        """Return a session's loop; its goal's status outweighs that of the last turn."""
        state: Rollout = folded.state
        last, modified_at, turn = parse_time(state.last), folded.stamp.modified_at, state.turn
        changed = utc(goal.updated_ms) if goal is not None and goal.updated_ms else None
        activity = last if last is not None and last <= moment.now + _CLOCK_TOLERANCE else modified_at
        if changed is not None and activity < changed <= moment.now:
            activity = changed
        if goal is not None and goal.status in _GOALS:
            found = State(_GOALS[goal.status], goal.status, source=StateSource.REPORTED)
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
    """Return the working folder by rollout name, from the cached names by folder."""
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
    """Return the database's goal, or the rollout's if newer or without a database.

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
    """Return files that may contain goals: names have versions, places have changed."""
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
    """Return goals by session ID in the newest database; None if none has the table."""
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
