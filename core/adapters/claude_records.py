"""Records of Claude Code's transcripts, decoded as far as they are used (docs/adapter-files.md#claude)."""

from __future__ import annotations

from typing import Any, Final
from zlib import adler32, crc32

import msgspec
from msgspec import Raw, Struct, field

MAX_COUNT: Final = 1 << 53
ASKING: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})  # tools that a person answers
_COST: Final = ("totalCostUSD", "total_cost_usd", "totalCostUsd", "totalCost", "costUSD")
_MAX_SEEN: Final = 64_000  # bytes of keys of records
_NEAR: Final = 512  # bytes of keys of records that may have the same time
_KEY_BYTES: Final = 8


class TokenUsage(Struct, gc=False):
    """Tokens of one message; cached ones are not part of `input_tokens`."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class Block(Struct, gc=False):
    """One part of a message: a text, a tool call or a tool's result."""

    type: str | None = None
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: Raw = Raw(b"{}")
    tool_use_id: str | None = None
    is_error: bool | None = None
    content: Raw = Raw(b"null")


class Message(Struct, gc=False):
    """A message of the agent, or to it."""

    id: str | None = None
    model: str | None = None
    stop_reason: str | None = None
    content: str | list[Block] | None = None
    usage: TokenUsage | None = None


class Attachment(Struct, gc=False):
    """What the program adds to a session, such as the state of its goal."""

    type: str | None = None
    met: bool | None = None
    sentinel: bool | None = None
    failed: bool | None = None
    condition: str | None = None
    reason: str | None = None
    iterations: float | None = None
    tokens: float | None = None
    prompt: Raw = Raw(b"null")


class Fork(Struct, gc=False):
    """Where a record was copied from."""

    sessionId: str | None = None


class Record(Struct, gc=False):
    """One line of a transcript; unknown types and fields are skipped."""

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
    message: Message | None = None
    attachment: Attachment | None = None
    durationMs: float | None = None
    forkedFrom: Fork | None = None
    toolUseResult: Raw = Raw(b"null")
    error: Raw = Raw(b"null")
    content: Raw = Raw(b"null")
    hookErrors: Raw = Raw(b"null")
    preventedContinuation: bool | None = None
    aiTitle: str | None = None
    is_error: bool | None = None


DECODER: Final = msgspec.json.Decoder(Record)


def read_json(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return None


def read_text(raw: Raw) -> str:
    """Return the text of a tool's result, which is a text or a list of blocks."""
    found = read_json(raw)
    if isinstance(found, list):
        found = "\n".join(str(one.get("text") or "") for one in found if isinstance(one, dict))
    return found if isinstance(found, str) else ""


def bounded(value: float | None) -> int:
    return int(min(max(value or 0, 0), MAX_COUNT))


class Call(Struct, array_like=True, gc=False):
    """A tool call without a result; `key` is its command or file, `text` its new code, prompt or question."""

    tool: str
    key: str = ""
    is_test: bool = False
    old: str = ""
    text: str = ""


class OpenError(Struct, array_like=True, gc=False):
    """A failed command, and the changes since then."""

    key: str
    message: str
    reason: str = ""
    edits: list[list[str]] = []  # file, old and new code
    tests: dict[str, str] = {}  # messages of the failed tests, by test; empty if not all are known


class Turn(Struct, array_like=True, gc=False):
    """One turn of an agent, or its work until the goal was judged or a Stop hook blocked.

    `failures` are pairs of tool and message; `fix` is a failed command that passed again, or
    of which a test did.
    """

    number: int = 0
    at: str = ""
    prompt: str = ""
    text: str = ""
    verdict: str = ""
    is_met: bool = False
    duration_ms: float | None = None
    failures: list[list[str]] = []
    fix: OpenError | None = None
    open_errors: list[OpenError] = []
    files: list[str] = []
    tools: list[str] = []
    test_passed: bool | None = None
    passed: int | None = None
    failed: int | None = None

    @property
    def has_work(self) -> bool:
        """Whether the agent did anything in it."""
        return bool(self.text or self.tools or self.failures)


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
        asking = (call.tool for call in self.calls.values() if call.tool in ASKING)
        return next(asking, "")

    @property
    def pending(self) -> str:
        """The question of the last tool call without a result, or the tool and its command or file; "" if none."""
        asking = [call for call in self.calls.values() if call.tool in ASKING]
        call = (asking or list(self.calls.values()) or [Call("")])[-1]
        return call.text if asking and call.text else f"{call.tool} {call.key}".strip()

    @property
    def iteration(self) -> int:
        """Number of evaluations of the goal, or else of turns."""
        goal = self.goal
        return goal.iterations if goal is not None and goal.iterations else self.turn_count + self.turn.has_work


class Repeats:
    """Finds records that occur earlier in the same file: compaction can repeat them."""

    def __init__(self) -> None:
        self._of: bytearray | None = None  # the state whose keys are in the set
        self._keys: set[bytes] = set()
        self._count = 0

    def contain(self, state: Session, record: Record, line: bytes) -> bool:
        """Return whether the record is a repetition; else note it, and its time."""
        at = record.timestamp or ""
        key = _key((record.uuid or "").encode() or line)
        keys = [key]
        message, attachment = record.message, record.attachment
        if message is not None and message.id and message.id not in state.open_usage:
            keys.append(_key(f"{message.id}\n{record.requestId}".encode()))
        elif attachment is not None and attachment.condition is not None:
            goal = (at, attachment.condition, attachment.met, attachment.failed, attachment.sentinel)
            keys.append(_key(repr(goal).encode()))
        seen = state.seen
        if at < state.last:
            if not self._seen(state).isdisjoint(keys):
                return True
        elif at == state.last and any(one in seen[-_NEAR:] for one in keys):
            return True
        for one in keys:
            seen += one
        if len(seen) > _MAX_SEEN:
            del seen[: _MAX_SEEN // 2]
            self._of = None
        if at > state.last and at.startswith("20") and len(at) <= 32 and at.isascii():
            state.last = at
        state.started = state.started or state.last
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


def _key(data: bytes) -> bytes:
    return (crc32(data) | adler32(data) << 32).to_bytes(_KEY_BYTES, "little")


def find_cost(line: bytes) -> float | None:
    """Return the reported cost in a record; the names of its fields differ between versions."""
    found = msgspec.json.decode(line)
    for fields in (found, *(value for value in found.values() if isinstance(value, dict))):
        for name in _COST:
            cost = fields.get(name)
            if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < MAX_COUNT:
                return float(cost)
    return None
