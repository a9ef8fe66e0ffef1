"""Fold a rollout of Codex, its transcript of one session, into a small state (docs/adapter-files.md#codex)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

from core.adapters.codex_payloads import (
    MAX_FILES,
    Payload,
    SessionMeta,
    clean_patch,
    decode_any,
    decode_line,
    decode_meta,
    error_kind,
    join_words,
    normalize_status,
    parse_command,
    patched_files,
    read_tokens,
    text_of,
    text_of_output,
)
from core.adapters.codex_records import Call, Goal, Rollout
from core.adapters.sessions import MAX_DIFF, Turn, can_change_files, note_command
from core.adapters.values import MAX_LABEL, MAX_TEXT, clip
from core.base.regexes import lazy_regex
from core.base.shell_commands import is_test_run
from core.records.times import parse_time

MAX_MESSAGE: Final = 600  # characters of a message
MAX_TURNS: Final = 50  # the last ones
_MAX_CALLS: Final = 32  # commands without a result
_COPY_TIME: Final = timedelta(seconds=2)  # in which a fork writes its copy of the history of another session
_SHELLS: Final = frozenset({"exec_command", "shell", "shell_command", "container.exec", "local_shell"})
_EXIT_CODE: Final = lazy_regex(rb'(?:[Ee]xit(?:ed with)? code:? |\\?"exit_code\\?": ?)(-?\d{1,9})')
_HEAD_BYTES: Final = 600
_OUTPUT: Final = "Output:\n"
_CONTEXT: Final = ("<environment_context>", "<user_instructions>", "# AGENTS.md instructions")
"""Begin messages that Codex writes before the first prompt in old versions."""
_SCRIPT_FAILED: Final = "Script failed"
_VERSION_7: Final = lazy_regex(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-.{17}")  # a UUID that begins with its time


class RolloutFold:
    """Reads a rollout line by line; see `core.adapters.runner_files.Fold`."""

    name = "codex"
    version = 2
    state = Rollout

    def add(self, state: Rollout, line: bytes) -> None:
        found = decode_line(line)
        payload = found.payload
        if found.type == "session_meta":
            _begin(state, decode_meta(line).payload, found.timestamp)
            return
        at = found.timestamp[:40]
        if state.is_copy and _is_copied(state, payload, at):
            if payload.type == "token_count":
                state.copied = read_tokens(payload.info) or state.copied
            return
        state.last = at or state.last
        if found.type == "event_msg" or found.type == "response_item":
            handle = _HANDLERS.get(payload.type)
            if handle is not None:
                handle(state, payload, at)
        elif found.type == "turn_context":
            state.model = text_of(payload.model, MAX_LABEL) or state.model
        elif found.type == "compacted":
            state.compactions += 1


def _begin(state: Rollout, meta: SessionMeta, at: str) -> None:
    id = meta.id[:MAX_LABEL]
    if state.id:
        if id != state.id and not state.turn_count:  # the history of another session follows
            state.is_copy = True
            state.forked_from = state.forked_from or id
        return
    source = decode_any(meta.source) if meta.source else ""
    spawn = _find_parent(source.get("subagent")) if isinstance(source, dict) else ""
    state.id, state.cwd = id, meta.cwd[:MAX_TEXT]
    state.started = state.last = (meta.timestamp or at)[:40]
    state.source = source[:MAX_LABEL] if isinstance(source, str) else "subagent" if isinstance(source, dict) else ""
    state.version = (meta.cli_version or "")[:MAX_LABEL]
    state.branch = clip(meta.git.branch or "", MAX_LABEL) if meta.git is not None else ""
    state.parent = (meta.parent_thread_id or spawn or "")[:MAX_LABEL]
    state.forked_from = (meta.forked_from_id or "")[:MAX_LABEL]
    state.is_copy = bool(state.parent or state.forked_from)


def _find_parent(subagent: Any) -> str:
    """Return the ID of the session that started a subagent; "" if it is unknown."""
    spawn = subagent.get("thread_spawn") if isinstance(subagent, dict) else None
    parent = spawn.get("parent_thread_id") if isinstance(spawn, dict) else None
    return parent if isinstance(parent, str) else ""


def _is_copied(state: Rollout, payload: Payload, at: str) -> bool:
    """Return whether a line was copied from another session; such lines end with the first own turn or prompt.

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


def _turn(state: Rollout, at: str) -> Turn:
    """Return the open turn; begin one if there is none."""
    if state.turns and not state.turns[-1].end:
        return state.turns[-1]
    state.turns.append(Turn(started=at))
    state.turn_count += 1
    del state.turns[:-MAX_TURNS]
    return state.turns[-1]


def _start_turn(state: Rollout, payload: Payload, at: str) -> None:
    if state.turns and not state.turns[-1].end:
        _close(state, "interrupted", at)
    turn = _turn(state, at)
    turn.id, turn.is_reported = (payload.turn_id or "")[:MAX_LABEL], True


def _complete_turn(state: Rollout, payload: Payload, at: str) -> None:
    turn = _turn(state, at)
    turn.add_text(text_of(payload.last_agent_message, MAX_MESSAGE))
    error = decode_any(payload.error) if payload.error else None
    if isinstance(error, dict):
        turn.error = clip(str(error.get("message") or "error"), MAX_MESSAGE)
        turn.error_kind = error_kind(error.get("codex_error_info"))
    _close(state, "task_complete", at)


def _abort_turn(state: Rollout, payload: Payload, at: str) -> None:
    _turn(state, at)
    _close(state, text_of(payload.reason, MAX_LABEL) or "turn_aborted", at)


def _close(state: Rollout, end: str, at: str) -> None:
    for call in state.calls.values():
        if call.exit_code is not None:
            _finish(state, call, call.exit_code, "", at)
    state.calls.clear()
    turn = state.turns[-1]
    turn.end, turn.ended = end, at


def _note_error(state: Rollout, payload: Payload, at: str) -> None:
    turn = _turn(state, at)
    turn.error = text_of(payload.message, MAX_MESSAGE) or "error"
    turn.error_kind = error_kind(decode_any(payload.codex_error_info) if payload.codex_error_info else None)


def _note_prompt(state: Rollout, payload: Payload, at: str) -> None:
    _set_prompt(state, text_of(payload.message, MAX_TEXT), at)


def _set_prompt(state: Rollout, text: str, at: str) -> None:
    if text.startswith(_CONTEXT):
        return
    turn = _turn(state, at)
    if not turn.is_reported and (turn.text or turn.tools):  # versions that write no starts and ends
        _close(state, "next prompt", at)
        turn = _turn(state, at)
    turn.prompt = turn.prompt or clip(text, MAX_MESSAGE)
    state.task = state.task or text


def _note_message(state: Rollout, payload: Payload, at: str) -> None:
    _turn(state, at).add_text(text_of(payload.message, MAX_MESSAGE))


def _count_tokens(state: Rollout, payload: Payload, at: str) -> None:
    state.tokens = read_tokens(payload.info) or state.tokens


def _note_goal(state: Rollout, payload: Payload, at: str) -> None:
    goal = decode_any(payload.goal)
    if isinstance(goal, dict):
        updated = parse_time(at)
        state.goal = Goal(
            objective=clip(str(goal.get("objective") or ""), MAX_TEXT),
            status=normalize_status(goal.get("status")),
            updated_ms=updated.timestamp() * 1000 if updated is not None else 0,
        )


def _note_call(state: Rollout, payload: Payload, at: str) -> None:
    """A tool is called: a command, a patch, or anything else of which only the name matters."""
    name = text_of(payload.name, MAX_LABEL) or "local_shell"
    turn = _turn(state, at)
    given = text_of(payload.arguments) or text_of(payload.input)
    call = Call(files=patched_files(given))
    turn.add_tool(name, is_change=bool(call.files))
    if call.files and turn.failures and len(turn.diff) < MAX_DIFF:
        turn.diff = clip(f"{turn.diff}{clean_patch(given)}", MAX_DIFF)
    if name in _SHELLS:
        call.command = parse_command(given or bytes(payload.action))
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
    text = text_of_output(decode_any(payload.output)) if is_read and payload.output else ""
    if exit_code is None and text.startswith(_SCRIPT_FAILED):
        exit_code = 1
    _finish(state, call, exit_code, text.rpartition(_OUTPUT)[2], at)


def _end_command(state: Rollout, payload: Payload, at: str) -> None:
    """A command ended; its output is here or in the line of the tool's output, which follows."""
    call = state.calls.get(payload.call_id or "")
    if call is None:
        return
    call.exit_code = payload.exit_code
    if payload.aggregated_output:
        del state.calls[payload.call_id or ""]
        _finish(state, call, payload.exit_code, text_of(payload.aggregated_output), at)


def _complete_item(state: Rollout, payload: Payload, at: str) -> None:
    """An item of newer versions: a prompt, a message, a command or a change of files."""
    item = decode_any(payload.item)
    kind = str(item.get("type", "")).lower()
    if kind == "usermessage":
        _set_prompt(state, clip(text_of_output(item.get("content")), MAX_TEXT), at)
    elif kind == "agentmessage":
        _turn(state, at).add_text(clip(text_of_output(item.get("content")), MAX_MESSAGE))
    elif kind == "commandexecution" and type(item.get("exit_code")) is int:
        call = state.calls.pop(str(item.get("id")), Call(command=join_words(item.get("command"))))
        _finish(state, call, item["exit_code"], str(item.get("aggregated_output") or ""), at)
    elif kind == "filechange" and isinstance(item.get("changes"), dict) and item.get("status") != "failed":
        _add_files(state, item["changes"], at)


def _end_patch(state: Rollout, payload: Payload, at: str) -> None:
    changes = decode_any(payload.changes) if payload.changes else None
    if bytes(payload.success) == b"true" and isinstance(changes, dict):
        _add_files(state, changes, at)


def _finish(state: Rollout, call: Call, exit_code: int | None, output: str, at: str) -> None:
    """Note the result of a command or patch."""
    turn = _turn(state, at)
    has_passed_before = state.test is None or state.test.has_passed
    has_failed = note_command(turn, call.command, exit_code, output, at)
    state.commands += bool(call.command)
    state.failures += has_failed
    if not has_failed and call.files:
        _add_files(state, call.files, at)
    if not has_failed and can_change_files(call.command):
        state.has_other_changes = True
        if "git commit" in call.command:
            state.changed = at
    if is_test_run(call.command) and exit_code is not None:
        state.test = turn.test
        if exit_code == 0 and not has_passed_before:
            state.changed = at


def _add_files(state: Rollout, files: Iterable[str], at: str) -> None:
    turn = _turn(state, at)
    for file in files:
        name = str(file)[:MAX_LABEL].removeprefix(f"{state.cwd}/")
        turn.add_file(name)
        if name not in state.files and len(state.files) < MAX_FILES:
            state.files.append(name)
        state.changed = at


_BEGINNINGS: Final = frozenset({"task_started", "turn_started", "user_message", "item_completed"})
_HANDLERS: Final[dict[str, Callable[[Rollout, Payload, str], None]]] = {
    "task_started": _start_turn,
    "turn_started": _start_turn,
    "task_complete": _complete_turn,
    "turn_complete": _complete_turn,
    "turn_aborted": _abort_turn,
    "error": _note_error,
    "user_message": _note_prompt,
    "agent_message": _note_message,
    "token_count": _count_tokens,
    "thread_goal_updated": _note_goal,
    "function_call": _note_call,
    "custom_tool_call": _note_call,
    "local_shell_call": _note_call,
    "function_call_output": _note_output,
    "custom_tool_call_output": _note_output,
    "exec_command_end": _end_command,
    "patch_apply_end": _end_patch,
    "item_completed": _complete_item,
}
