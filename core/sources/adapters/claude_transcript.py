"""Fold of Claude Code transcripts into a session; docs/adapter-files.md#claude.

Only the structure of records counts: a text that quotes a record, a marker or an error means nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.sources.adapters.claude_session import (
    DECODER,
    MAX_COUNT,
    Block,
    Call,
    Goal,
    Record,
    Repeats,
    Session,
    TokenUsage,
    Turn,
    add_call,
    add_failure,
    add_result,
    bounded,
    find_cost,
    first_line,
    read_json,
    read_text,
)

if TYPE_CHECKING:
    from msgspec import Raw

MAX_TASK: Final = 4_000
MAX_TEXT: Final = 2_000
MAX_TURNS: Final = 30
STOP_BLOCK_CAP: Final = 8  # consecutive blocks by Stop hooks after which Claude Code stops anyway
_MAX_OPEN: Final = 16  # messages whose usage can still change, and tool calls without a result
_MAX_GOALS: Final = 10
_MAX_CRONS: Final = 20
_MAX_COMMANDS: Final = 5
_UNUSED: Final = (
    b'{"type":"file-history-snapshot"',
    b'{"type":"progress"',
    b'{"type":"last-prompt"',
    b'{"type":"mode"',
    b'{"type":"pr-link"',
)
_COMMAND: Final = lazy_regex(
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?<command-name>(/?[\w:.-]{1,80})</command-name>"
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?(?:<command-args>(.*)</command-args>)?\s*",
    re.DOTALL,
)
_INTERRUPTED: Final = frozenset({"[Request interrupted by user]", "[Request interrupted by user for tool use]"})
_NOT_PROMPTS: Final = ("<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "Caveat: ")
_LIMIT: Final = lazy_regex(r"\b(?:hit|reached) your\b.{0,40}\blimit|\blimit reached\b|\brate.limit", re.IGNORECASE)
_OVERFLOW: Final = lazy_regex(r"prompt is too long|context (?:window|length|limit)", re.IGNORECASE)
_GOAL_SET: Final = "Goal set: "
_STOP_FEEDBACK: Final = "Stop hook feedback"


class SessionFold:
    """Reads a transcript record by record."""

    name: str = "claude-session"
    version: int = 3
    state: type[Session] = Session

    def __init__(self) -> None:
        self._repeats = Repeats()

    def add(self, state: Session, line: bytes) -> None:
        """Add one record."""
        if line.startswith(_UNUSED):
            return
        record = DECODER.decode(line)
        kind = record.type
        if kind in _TIMED:
            if self._repeats.contain(state, record, line) or _is_history(state, record):
                return
            _TIMED[kind](state, record)
        elif kind == "queue-operation":
            text = read_json(record.content)
            if isinstance(text, str) and text.startswith(_GOAL_SET):
                _arm(state, text.removeprefix(_GOAL_SET), record.timestamp)
        elif kind == "ai-title":
            state.title = clip(record.aiTitle or "", 200) or state.title
        elif kind in ("result", "cost-state"):
            if kind == "result":
                state.result = clip(record.subtype or "", 80)
                state.result = "error" if record.is_error and state.result == "success" else state.result
            cost = find_cost(line)
            state.cost = cost if cost is not None else state.cost


def _is_history(state: Session, record: Record) -> bool:
    """Set whose session it is; return whether the record was copied from another one."""
    if record.sessionId == state.session_id and record.forkedFrom is None and state.cwd:
        return False
    state.cwd = state.cwd or (record.cwd or "")[:MAX_TASK]
    if state.is_sidechain is None and record.isSidechain is not None:
        state.is_sidechain = record.isSidechain
    _set_origin(state, record)
    own = (record.sessionId or "")[:80]
    if record.forkedFrom is not None and record.forkedFrom.sessionId:
        state.forked_from = record.forkedFrom.sessionId[:80]
        state.session_id = state.session_id or own
        state.started = ""
        return True
    if own and own != state.session_id:
        if state.session_id and not state.forked_from:  # what was read until now is the history of another session
            _start_anew(state, record)
        state.session_id = own
    return False


def _set_origin(state: Session, record: Record) -> None:
    state.version = clip(record.version or state.version, 40)
    state.branch = clip(record.gitBranch or state.branch, 200)
    state.entrypoint = state.entrypoint or clip(record.entrypoint or "", 40)
    state.prompt_source = state.prompt_source or clip(record.promptSource or "", 40)


def _start_anew(state: Session, record: Record) -> None:
    fresh = Session()
    for name in ("cwd", "is_sidechain", "version", "branch", "entrypoint", "prompt_source", "task", "last", "seen"):
        setattr(fresh, name, getattr(state, name))
    fresh.forked_from = state.session_id
    fresh.started = record.timestamp or state.last
    for name in Session.__struct_fields__:
        setattr(state, name, getattr(fresh, name))


def _add_user(state: Session, record: Record) -> None:
    content = record.message.content if record.message is not None else None
    if isinstance(content, list):
        results = [block for block in content if block.type == "tool_result"]
        if results:
            for block in results:
                _add_tool_result(state, record, block)
            state.phase = "work"
            return
        text = "\n".join(block.text for block in content if block.type == "text" and block.text)
    else:
        text = content or ""
    if record.isMeta:
        if text.startswith(_STOP_FEEDBACK):
            _add_block(state, "feedback")
        elif text.startswith(_GOAL_SET):
            _arm(state, text.removeprefix(_GOAL_SET), record.timestamp)
    elif record.isCompactSummary or (record.isSidechain and not state.is_sidechain):
        return
    elif text in _INTERRUPTED:
        state.phase = "interrupted"
    elif command := _COMMAND.fullmatch(text) if text.lstrip()[:9] == "<command-" else None:
        _add_command(state, record, command[1], (command[2] or "").strip())
    elif text.startswith("<local-command-stdout>"):
        state.phase = "turn-end"
    elif text and not text.startswith(_NOT_PROMPTS):
        _add_prompt(state, record, text)


def _add_prompt(state: Session, record: Record, text: str) -> None:
    state.task = state.task or clip(text, MAX_TASK)
    _set_origin(state, record)
    _close_turn(state, record.timestamp)
    state.turn.prompt = first_line(text)
    state.blocks, state.block_part = 0, ""
    state.phase, state.error, state.result = "prompt", "", ""


def _add_command(state: Session, record: Record, name: str, arguments: str) -> None:
    name = name if name.startswith("/") else f"/{name}"
    text = f"{name} {arguments}".strip()
    state.commands = [*state.commands, clip(text, 200)][-_MAX_COMMANDS:]
    if name == "/goal" and arguments == "clear":
        if state.goal is not None and state.goal.state == "armed":
            state.goal.state, state.goal.at = "cleared", record.timestamp or ""
        return
    _add_prompt(state, record, text)


def _add_tool_result(state: Session, record: Record, block: Block) -> None:
    call = state.calls.pop(block.tool_use_id or "", None)
    if call is None or not (block.is_error or call.is_test or call.tool in _CRON_TOOLS):
        if call is not None:
            add_result(state, call, "", False, record.timestamp or "")
        return
    if call.tool in _CRON_TOOLS:
        if not block.is_error:
            _add_cron(state, call, record.toolUseResult)
    else:
        add_result(state, call, read_text(block.content), bool(block.is_error), record.timestamp or "")


def _add_cron(state: Session, call: Call, raw: Raw) -> None:
    found = read_json(raw)
    found = found if isinstance(found, dict) else {}
    if call.tool == "CronCreate" and isinstance(found.get("id"), str) and len(state.crons) < _MAX_CRONS:
        schedule = found.get("humanSchedule")
        shown = schedule if isinstance(schedule, str) else call.key
        state.crons[found["id"][:80]] = [clip(shown, 200), clip(call.text, MAX_TASK)]
    elif call.tool == "CronDelete":
        state.crons.pop(call.key, None)
    elif call.tool == "CronList" and isinstance(jobs := found.get("jobs"), list):
        listed = {job["id"] for job in jobs if isinstance(job, dict) and isinstance(job.get("id"), str)}
        state.crons = {id: cron for id, cron in state.crons.items() if id in listed}
    elif call.tool == "ScheduleWakeup" and isinstance(at := found.get("scheduledFor"), str | int):
        state.wakeup = str(at)[:40]


_CRON_TOOLS: Final = frozenset({"CronCreate", "CronDelete", "CronList", "ScheduleWakeup"})


def _add_assistant(state: Session, record: Record) -> None:
    message = record.message
    if message is None:
        return
    if message.usage is not None and message.id:
        _add_usage(state, f"{message.id}\n{record.requestId}"[:200], message.id, message.usage)
    blocks = message.content if isinstance(message.content, list) else []
    text = "\n".join(block.text for block in blocks if block.type == "text" and block.text)
    if record.isApiErrorMessage:
        _add_api_error(state, record, text)
        return
    if message.model and message.model != "<synthetic>":
        state.model = clip(message.model, 80)
    state.block_part = ""
    if record.isSidechain and not state.is_sidechain:
        return
    if text:
        state.last_text = text[-MAX_TEXT:]
        state.turn.text = first_line(text)
    uses = [block for block in blocks if block.type == "tool_use" and block.id and block.name]
    for block in uses:
        if len(state.calls) >= _MAX_OPEN:
            del state.calls[next(iter(state.calls))]
        state.calls[(block.id or "")[:80]] = add_call(state, block.name or "", block.input)
    state.stop_reason = clip(message.stop_reason or "", 40)
    state.phase = "work" if uses or message.stop_reason in (None, "tool_use", "pause_turn") else "answer"
    state.error = ""


def _add_usage(state: Session, key: str, id: str, usage: TokenUsage) -> None:
    """Count a message's tokens; each of its lines repeats them, the last is right."""
    counts = [
        usage.input_tokens or 0,
        usage.output_tokens or 0,
        usage.cache_read_input_tokens or 0,
        usage.cache_creation_input_tokens or 0,
    ]
    if min(counts) < 0 or max(counts) > MAX_COUNT:
        counts = [min(max(count, 0), MAX_COUNT) for count in counts]
    known = state.open_usage.pop(key, None)
    totals = state.totals
    if totals is None:
        state.totals = list(counts)
    else:
        for place, count in enumerate(counts):
            totals[place] = min(totals[place] + count - (known[place] if known else 0), MAX_COUNT)
    if known is None and len(state.open_usage) >= _MAX_OPEN:
        del state.open_usage[next(iter(state.open_usage))]
    state.open_usage[key] = counts


def _add_api_error(state: Session, record: Record, text: str) -> None:
    word = read_json(record.error)
    word = clip(word, 80) if isinstance(word, str) else ""
    if word == "rate_limit" or (not word and _LIMIT.search(text[:400])):
        state.phase, state.error = "limit", "rate_limit"
    else:
        state.phase = "api-error"
        state.error = "context_overflow" if _OVERFLOW.search(text[:400]) else word or "api_error"
    state.error_count += 1
    add_failure(state.turn, "API", text or word)


def _add_system(state: Session, record: Record) -> None:
    match record.subtype:
        case "turn_duration":
            _close_turn(state, record.timestamp, duration_ms=record.durationMs)
            if state.phase not in ("interrupted", "api-error", "limit"):
                state.phase = "turn-end"
        case "stop_hook_summary":
            errors = read_json(record.hookErrors)
            if record.preventedContinuation or (isinstance(errors, list) and errors):
                _add_block(state, "summary")
        case "compact_boundary":
            state.compactions += 1
        case "api_error":
            error = read_json(record.error)
            state.error_count += 1
            if isinstance(error, dict) and error.get("status") == 429:
                state.phase, state.error = "limit", "rate_limit"
        case "local_command":
            text = read_json(record.content)
            if isinstance(text, str) and (command := _COMMAND.fullmatch(text)):
                _add_command(state, record, command[1], (command[2] or "").strip())
                state.phase = "turn-end"
        case _:
            pass


def _add_block(state: Session, part: str) -> None:
    """Count a blocking Stop hook; summary and feedback are two records in any order."""
    if state.block_part in ("", part):
        state.blocks += 1
        _close_turn(state, state.last)
    state.block_part = part
    state.phase = "work"


def _add_attachment(state: Session, record: Record) -> None:
    found, at = record.attachment, record.timestamp or ""
    if found is None:
        return
    if found.type == "queued_command":
        prompt = read_json(found.prompt)
        if isinstance(prompt, str) and prompt.startswith(_GOAL_SET):
            _arm(state, prompt.removeprefix(_GOAL_SET), at)
    if found.type != "goal_status" or found.condition is None:
        return
    condition = clip(found.condition.strip(), MAX_TASK)
    goal = state.goal
    if found.sentinel:
        if not found.met:
            _arm(state, condition, at)
        elif goal is not None and goal.state == "armed":
            goal.state, goal.at = "cleared", at
        return
    if goal is None or goal.condition != condition:
        goal = _arm(state, condition, at)
    goal.state = "met" if found.met else "failed" if found.failed else "armed"
    goal.reason = clip(found.reason or "", MAX_TEXT)
    goal.at = at
    goal.iterations = max(goal.iterations + 1, bounded(found.iterations))
    goal.tokens = bounded(found.tokens) or goal.tokens
    state.turn.verdict = first_line(goal.reason)
    state.turn.is_met = bool(found.met)
    _close_turn(state, at)


def _arm(state: Session, condition: str, at: str | None) -> Goal:
    condition = clip(condition.strip(), MAX_TASK)
    goal = state.goal
    if goal is not None:
        if goal.condition == condition and goal.state == "armed":
            return goal
        state.goals = [*state.goals, goal][-_MAX_GOALS:]
    state.goal = goal = Goal(condition, at=at or "")
    return goal


def _close_turn(state: Session, at: str | None, duration_ms: float | None = None) -> None:
    turn = state.turn
    if turn.has_work:
        turn.at = at or state.last
        turn.duration_ms = duration_ms
        state.turn_count += 1
        turn.number = state.turn_count
        state.turns = [*state.turns, turn][-MAX_TURNS:]
        state.turn = Turn(open_errors=turn.open_errors)
        turn.open_errors = []
    elif duration_ms is not None and state.turns and state.turns[-1].duration_ms is None:
        state.turns[-1].duration_ms = duration_ms


_TIMED: Final = {
    "user": _add_user,
    "assistant": _add_assistant,
    "system": _add_system,
    "attachment": _add_attachment,
}
