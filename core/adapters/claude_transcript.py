"""Claude Code's transcripts: a fold of JSON lines into what is known about a session (docs/adapter-files.md#claude).

Only the structure of records counts: a text that quotes a record, a marker or an error means nothing.
"""

from __future__ import annotations

import re
from typing import Any, Final
from zlib import adler32, crc32

import msgspec
from msgspec import Raw, Struct, field

from core.adapters.claude_work import Call, Turn, add_call, add_failure, add_result, first_line

MAX_TASK: Final = 4_000
MAX_TEXT: Final = 2_000
MAX_TURNS: Final = 40
MAX_COUNT: Final = 1 << 53
STOP_BLOCK_CAP: Final = 8  # consecutive blocks by Stop hooks after which Claude Code stops anyway
_MAX_OPEN: Final = 64  # messages whose usage can still change, and tool calls without a result
_MAX_GOALS: Final = 10
_MAX_CRONS: Final = 20
_MAX_COMMANDS: Final = 5
_MAX_SEEN: Final = 160_000  # bytes of keys of records
_KEY_BYTES: Final = 8
_UNUSED: Final = (
    b'{"type":"file-history-snapshot"',
    b'{"type":"progress"',
    b'{"type":"last-prompt"',
    b'{"type":"mode"',
    b'{"type":"pr-link"',
)
_COMMAND: Final = re.compile(
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?<command-name>(/?[\w:.-]{1,80})</command-name>"
    r"\s*(?:<command-message>[^<]*</command-message>\s*)?(?:<command-args>(.*)</command-args>)?\s*",
    re.DOTALL,
)
_INTERRUPTED: Final = frozenset({"[Request interrupted by user]", "[Request interrupted by user for tool use]"})
_NOT_PROMPTS: Final = ("<local-command-", "<bash-", "<task-notification>", "<system-reminder>", "Caveat: ")
_LIMIT: Final = re.compile(r"\b(?:hit|reached) your\b.{0,40}\blimit|\blimit reached\b|\brate.limit", re.IGNORECASE)
_OVERFLOW: Final = re.compile(r"prompt is too long|context (?:window|length|limit)", re.IGNORECASE)
_GOAL_SET: Final = "Goal set: "
_STOP_FEEDBACK: Final = "Stop hook feedback"
_COST: Final = ("totalCostUSD", "total_cost_usd", "totalCostUsd", "totalCost", "costUSD")


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _Block(Struct, gc=False):
    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"{}")
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: Raw = Raw(b"null")


class _Message(Struct, gc=False):
    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: str | list[_Block] | None = None
    usage: _Usage | None = None


class _Attachment(Struct, gc=False):
    type: str | None = None
    met: bool | None = None
    sentinel: bool | None = None
    failed: bool | None = None
    condition: str | None = None
    reason: str | None = None
    iterations: float | None = None
    tokens: float | None = None
    prompt: Raw = Raw(b"null")


class _Fork(Struct, gc=False):
    sessionId: str | None = None


class _Record(Struct, gc=False):
    type: str
    subtype: str | None = None
    uuid: str | None = None
    timestamp: str | None = None
    cwd: str | None = None
    sessionId: str | None = None
    isSidechain: bool | None = None
    isMeta: bool | None = None
    isCompactSummary: bool | None = None
    isApiErrorMessage: bool | None = None
    entrypoint: str | None = None
    promptSource: str | None = None
    version: str | None = None
    gitBranch: str | None = None
    requestId: str | None = None
    message: _Message | None = None
    attachment: _Attachment | None = None
    durationMs: float | None = None
    forkedFrom: _Fork | None = None
    toolUseResult: Raw = Raw(b"null")
    error: Raw = Raw(b"null")
    content: Raw = Raw(b"null")
    hookErrors: Raw = Raw(b"null")
    preventedContinuation: bool | None = None
    aiTitle: str | None = None
    is_error: bool | None = None


class Goal(Struct, array_like=True, gc=False):
    """A goal of `/goal`; its state is armed, met, failed or cleared."""

    condition: str
    state: str = "armed"
    reason: str = ""
    iterations: int = 0
    tokens: int = 0
    at: str = ""


class Session(Struct, array_like=True):
    """What is known about a session; the state of `SessionFold`.

    Times are ISO texts. `last` is the newest time in the file. `phase` is what its last record was: prompt, work,
    answer, turn-end, interrupted, api-error or limit; `error` is the agent's word for the last two. `totals` are input,
    output, cache read and cache write. `blocks` counts the Stop hooks in a row that made the agent continue.
    """

    cwd: str = ""
    session_id: str = ""
    forked_from: str = ""
    entrypoint: str = ""
    prompt_source: str = ""
    version: str = ""
    branch: str = ""
    model: str = ""
    title: str = ""
    task: str = ""
    started: str = ""
    last: str = ""
    is_sidechain: bool | None = None
    phase: str = ""
    error: str = ""
    result: str = ""  # subtype of a result record
    stop_reason: str = ""
    last_text: str = ""
    totals: list[int] | None = None
    open_usage: dict[str, list[int]] = {}
    cost: float | None = None
    goal: Goal | None = None
    goals: list[Goal] = []
    crons: dict[str, list[str]] = {}
    wakeup: str = ""
    commands: list[str] = []
    calls: dict[str, Call] = {}
    turn: Turn = field(default_factory=Turn)
    turns: list[Turn] = []
    turn_count: int = 0
    error_count: int = 0
    compactions: int = 0
    blocks: int = 0
    block_part: str = ""
    test_command: str = ""
    test_passed: bool | None = None
    changed: list[str] = []
    change_count: int = 0
    can_change: bool = False
    changed_at: str = ""
    seen: bytearray = field(default_factory=bytearray)

    @property
    def is_headless(self) -> bool:
        """Whether a program started the session, such as `claude -p` in a script."""
        return self.entrypoint.startswith("sdk") or self.prompt_source == "sdk"

    @property
    def question(self) -> str:
        """The tool with which the agent asked a person, if there is no answer; else ""."""
        asking = (call.tool for call in self.calls.values() if call.tool in ("AskUserQuestion", "ExitPlanMode"))
        return next(asking, "")

    @property
    def iteration(self) -> int:
        """Number of evaluations of the goal, or else of turns."""
        goal = self.goal
        return goal.iterations if goal is not None and goal.iterations else self.turn_count + self.turn.has_work


class SessionFold:
    """Reads a transcript record by record."""

    name: str = "claude-session"
    version: int = 1
    state: type[Session] = Session

    def __init__(self) -> None:
        self._of: bytearray | None = None  # the state whose keys are in the set
        self._keys: set[bytes] = set()
        self._count = 0

    def add(self, state: Session, line: bytes) -> None:
        """Add one record."""
        if line.startswith(_UNUSED):
            return
        record = _DECODER.decode(line)
        kind = record.type
        if kind in _TIMED:
            if self._is_known(state, record, line) or _is_history(state, record):
                return
            _TIMED[kind](state, record)
        elif kind in _UNTIMED:
            _UNTIMED[kind](state, record, line)

    def _is_known(self, state: Session, record: _Record, line: bytes) -> bool:
        """Return whether the record stands earlier in the file, which compaction can repeat."""
        at = record.timestamp or ""
        key = _key((record.uuid or "").encode() or line)
        keys = [key]
        message, attachment = record.message, record.attachment
        if message is not None and message.id and message.id not in state.open_usage:
            keys.append(_key(f"{message.id}\n{record.requestId}".encode()))
        elif attachment is not None and attachment.condition is not None:
            goal = (at, attachment.condition, attachment.met, attachment.failed, attachment.sentinel)
            keys.append(_key(repr(goal).encode()))
        if at <= state.last and not self._seen(state).isdisjoint(keys):
            return True
        seen = state.seen
        for one in keys:
            seen += one
        if len(seen) > _MAX_SEEN:
            del seen[: _MAX_SEEN // 2]
            self._of = None
        if at.startswith("20") and len(at) <= 32 and at.isascii():
            state.started = state.started or at
            state.last = max(state.last, at)
        return False

    def _seen(self, state: Session) -> set[bytes]:
        seen = state.seen
        if self._of is not seen or self._count > len(seen):
            self._of, self._keys, self._count = seen, set(), 0
        end = len(seen) - len(seen) % _KEY_BYTES
        data = bytes(seen[self._count : end])
        self._keys.update(data[at : at + _KEY_BYTES] for at in range(0, len(data), _KEY_BYTES))
        self._count = end
        return self._keys


_DECODER: Final = msgspec.json.Decoder(_Record)


def _key(data: bytes) -> bytes:
    return (crc32(data) | adler32(data) << 32).to_bytes(_KEY_BYTES, "little")


def _is_history(state: Session, record: _Record) -> bool:
    """Set whose session it is; return whether the record was copied from another one."""
    state.cwd = state.cwd or (record.cwd or "")[:MAX_TASK]
    if state.is_sidechain is None and record.isSidechain is not None:
        state.is_sidechain = record.isSidechain
    state.version = (record.version or state.version)[:40]
    state.branch = (record.gitBranch or state.branch)[:200]
    state.entrypoint = state.entrypoint or (record.entrypoint or "")[:40]
    state.prompt_source = state.prompt_source or (record.promptSource or "")[:40]
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


def _start_anew(state: Session, record: _Record) -> None:
    fresh = Session()
    for name in ("cwd", "is_sidechain", "version", "branch", "entrypoint", "prompt_source", "task", "last", "seen"):
        setattr(fresh, name, getattr(state, name))
    fresh.forked_from = state.session_id
    fresh.started = record.timestamp or state.last
    for name in Session.__struct_fields__:
        setattr(state, name, getattr(fresh, name))


def _add_user(state: Session, record: _Record) -> None:
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


def _add_prompt(state: Session, record: _Record, text: str) -> None:
    state.task = state.task or text[:MAX_TASK]
    _close_turn(state, record.timestamp)
    state.turn.prompt = first_line(text)
    state.blocks, state.block_part = 0, ""
    state.phase, state.error, state.result = "prompt", "", ""


def _add_command(state: Session, record: _Record, name: str, arguments: str) -> None:
    name = name if name.startswith("/") else f"/{name}"
    text = f"{name} {arguments}".strip()
    state.commands = [*state.commands, text[:200]][-_MAX_COMMANDS:]
    if name == "/goal" and arguments == "clear":
        if state.goal is not None and state.goal.state == "armed":
            state.goal.state, state.goal.at = "cleared", record.timestamp or ""
        return
    _add_prompt(state, record, text)


def _add_tool_result(state: Session, record: _Record, block: _Block) -> None:
    call = state.calls.pop(block.tool_use_id or "", None)
    if call is None or not (block.is_error or call.is_test or call.tool in _CRON_TOOLS):
        if call is not None:
            add_result(state, call, "", False, record.timestamp or "")
        return
    if call.tool in _CRON_TOOLS:
        if not block.is_error:
            _add_cron(state, call, record.toolUseResult)
    else:
        add_result(state, call, _text(block.content), bool(block.is_error), record.timestamp or "")


def _add_cron(state: Session, call: Call, raw: Raw) -> None:
    found = _json(raw)
    found = found if isinstance(found, dict) else {}
    if call.tool == "CronCreate" and isinstance(found.get("id"), str) and len(state.crons) < _MAX_CRONS:
        schedule = found.get("humanSchedule")
        shown = schedule if isinstance(schedule, str) else call.key
        state.crons[found["id"][:80]] = [shown[:200], call.text[:MAX_TASK]]
    elif call.tool == "CronDelete":
        state.crons.pop(call.key, None)
    elif call.tool == "CronList" and isinstance(jobs := found.get("jobs"), list):
        listed = {job["id"] for job in jobs if isinstance(job, dict) and isinstance(job.get("id"), str)}
        state.crons = {id: cron for id, cron in state.crons.items() if id in listed}
    elif call.tool == "ScheduleWakeup" and isinstance(at := found.get("scheduledFor"), str | int | float):
        state.wakeup = str(at)[:40]


_CRON_TOOLS: Final = frozenset({"CronCreate", "CronDelete", "CronList", "ScheduleWakeup"})


def _add_assistant(state: Session, record: _Record) -> None:
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
        state.model = message.model[:80]
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
    state.stop_reason = (message.stop_reason or "")[:40]
    state.phase = "work" if uses or message.stop_reason in (None, "tool_use", "pause_turn") else "answer"
    state.error = ""


def _add_usage(state: Session, key: str, id: str, usage: _Usage) -> None:
    """Count the tokens of a message; each of its lines repeats them, and the last one is right."""
    counts = [
        min(max(count or 0, 0), MAX_COUNT)
        for count in (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_input_tokens,
            usage.cache_creation_input_tokens,
        )
    ]
    known = state.open_usage.get(key, [0, 0, 0, 0])
    totals = state.totals or [0, 0, 0, 0]
    state.totals = [min(total + new - old, MAX_COUNT) for total, new, old in zip(totals, counts, known, strict=False)]
    if key not in state.open_usage and len(state.open_usage) >= _MAX_OPEN:
        del state.open_usage[next(iter(state.open_usage))]
    state.open_usage[key] = counts


def _add_api_error(state: Session, record: _Record, text: str) -> None:
    word = _json(record.error)
    word = word[:80] if isinstance(word, str) else ""
    if word == "rate_limit" or (not word and _LIMIT.search(text[:400])):
        state.phase, state.error = "limit", "rate_limit"
    else:
        state.phase = "api-error"
        state.error = "context_overflow" if _OVERFLOW.search(text[:400]) else word or "api_error"
    state.error_count += 1
    add_failure(state.turn, "API", text or word)


def _add_system(state: Session, record: _Record) -> None:
    match record.subtype:
        case "turn_duration":
            _close_turn(state, record.timestamp, duration_ms=record.durationMs)
            if state.phase not in ("interrupted", "api-error", "limit"):
                state.phase = "turn-end"
        case "stop_hook_summary":
            errors = _json(record.hookErrors)
            if record.preventedContinuation or (isinstance(errors, list) and errors):
                _add_block(state, "summary")
        case "compact_boundary":
            state.compactions += 1
        case "api_error":
            error = _json(record.error)
            state.error_count += 1
            if isinstance(error, dict) and error.get("status") == 429:
                state.phase, state.error = "limit", "rate_limit"
        case "local_command":
            text = _json(record.content)
            if isinstance(text, str) and (command := _COMMAND.fullmatch(text)):
                _add_command(state, record, command[1], (command[2] or "").strip())
                state.phase = "turn-end"
        case _:
            pass


def _add_block(state: Session, part: str) -> None:
    """Count a Stop hook that blocked; its summary and its feedback are two records, in any order."""
    if state.block_part in ("", part):
        state.blocks += 1
        _close_turn(state, state.last)
    state.block_part = part
    state.phase = "work"


def _add_attachment(state: Session, record: _Record) -> None:
    found, at = record.attachment, record.timestamp or ""
    if found is None:
        return
    if found.type == "queued_command":
        prompt = _json(found.prompt)
        if isinstance(prompt, str) and prompt.startswith(_GOAL_SET):
            _arm(state, prompt.removeprefix(_GOAL_SET), at)
    if found.type != "goal_status" or found.condition is None:
        return
    condition = found.condition.strip()[:MAX_TASK]
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
    goal.reason = (found.reason or "")[:MAX_TEXT]
    goal.at = at
    goal.iterations = max(goal.iterations + 1, _count(found.iterations))
    goal.tokens = _count(found.tokens) or goal.tokens
    state.turn.verdict = first_line(goal.reason)
    state.turn.is_met = bool(found.met)
    _close_turn(state, at)


def _arm(state: Session, condition: str, at: str | None) -> Goal:
    condition = condition.strip()[:MAX_TASK]
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


def _add_queued(state: Session, record: _Record, line: bytes) -> None:
    text = _json(record.content)
    if isinstance(text, str) and text.startswith(_GOAL_SET):
        _arm(state, text.removeprefix(_GOAL_SET), record.timestamp)


def _add_title(state: Session, record: _Record, line: bytes) -> None:
    state.title = (record.aiTitle or "")[:200] or state.title


def _add_result_record(state: Session, record: _Record, line: bytes) -> None:
    state.result = (record.subtype or "")[:80]
    if record.is_error and state.result == "success":
        state.result = "error"
    _add_cost(state, record, line)


def _add_cost(state: Session, record: _Record, line: bytes) -> None:
    """Find the reported cost; the names of its fields differ between versions."""
    found = msgspec.json.decode(line)
    for fields in (found, *(value for value in found.values() if isinstance(value, dict))):
        for name in _COST:
            cost = fields.get(name)
            if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < MAX_COUNT:
                state.cost = float(cost)
                return


_TIMED: Final = {
    "user": _add_user,
    "assistant": _add_assistant,
    "system": _add_system,
    "attachment": _add_attachment,
}
_UNTIMED: Final = {
    "queue-operation": _add_queued,
    "ai-title": _add_title,
    "result": _add_result_record,
    "cost-state": _add_cost,
}


def _json(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _text(raw: Raw) -> str:
    """Return the text of a tool's result, which is a text or a list of blocks."""
    found = _json(raw)
    if isinstance(found, list):
        found = "\n".join(str(one.get("text") or "") for one in found if isinstance(one, dict))
    return found if isinstance(found, str) else ""


def _count(value: float | None) -> int:
    return int(min(max(value or 0, 0), MAX_COUNT))
