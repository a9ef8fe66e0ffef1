"""Known facts of a Claude Code session: its record parts, and what its tools did.

`core.sources.adapters.claude_transcript` folds the records; docs/adapter-files.md#claude describes the files.
"""

from __future__ import annotations

import re
from typing import Any, Final
from zlib import adler32, crc32

import msgspec
from msgspec import Raw, Struct, field

from core.base.masking import clip
from core.base.regexes import lazy_regex
from core.base.shell_commands import find_error, parse_results
from core.records.debug_sessions import Failure, Fix, Results
from core.records.loops import Iteration, Outcome
from core.records.times import parse_time

MAX_COUNT: Final = 1 << 53
ASKING: Final = frozenset({"AskUserQuestion", "ExitPlanMode"})  # tools that a person answers
_COST: Final = ("totalCostUSD", "total_cost_usd", "totalCostUsd", "totalCost", "costUSD")
_MAX_SEEN: Final = 64_000  # bytes of keys of records
_NEAR: Final = 512  # bytes of keys of records that may have the same time
_KEY_BYTES: Final = 8
_MAX_LINE: Final = 200
_MAX_FILES: Final = 20
_MAX_TOOLS: Final = 10
_MAX_FAILURES: Final = 5  # of one turn
_MAX_TESTS: Final = 20  # failed tests of one run that are compared
_MAX_EDITS: Final = 5
_MAX_OPEN: Final = 3  # failed commands that wait for a fix
_MAX_CODE: Final = 600
_MAX_ERROR_OUTPUT: Final = 20_000
_EDITS: Final = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_WITH_INPUT: Final = _EDITS | ASKING | {"Bash", "CronCreate", "CronDelete"}
_READ_ONLY: Final = frozenset(
    {"Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "BashOutput", "ToolSearch"}
    | {"AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}
    | {"CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "NotebookRead", "ListMcpResourcesTool"}
)
_TEST: Final = lazy_regex(
    r"\b(?:pytest|unittest|tox|nox|jest|vitest|mocha|ava|rspec|phpunit|ctest|playwright test|deno test|bun test"
    r"|(?:cargo|go|dotnet|mix|swift|flutter|zig build|bazel) test|cargo nextest|mvn\s.{0,40}\b(?:test|verify)"
    r"|(?:gradle|gradlew)\s.{0,40}\btest|(?:npm|pnpm|yarn|bun)(?: run)? (?:t|test)\b[\w:-]*"
    r"|(?:make|just|rake) (?:test|check)\b)"
)
_PIPED: Final = lazy_regex(r"[|;]|&\s*$")  # the status of the command may not be that of the tests
_EXIT_CODE: Final = lazy_regex(r"(?:Error: )?(?:Exit code -?\d+|Command failed with exit code -?\d+)[:.]?\s*")
_FAILED: Final = lazy_regex(r"^FAILED (\S{1,300}) - (.{1,900})$", re.MULTILINE)
_REPORTED: Final = lazy_regex(r"^E {3,}(\S.{0,900})$", re.MULTILINE)
_TAG: Final = lazy_regex(r"</?tool_use_error>")
_REJECTED: Final = ("The user doesn't want to", "The user does not want to", "[Request interrupted", "User rejected")


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
    """A pending call: command or file (`key`), new code, prompt or question (`text`)."""

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
    """A turn of an agent, or its work until a goal was judged or a Stop hook blocked.

    `failures` are pairs of tool and message; `fix` is a failed command that passed again, or of which a test did.
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
        """Question of the last open tool call, or its tool and key; "" if there is none."""
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
    """Find the reported cost in a record; its field names differ between versions."""
    found = msgspec.json.decode(line)
    for fields in (found, *(value for value in found.values() if isinstance(value, dict))):
        for name in _COST:
            cost = fields.get(name)
            if isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < MAX_COUNT:
                return float(cost)
    return None


class Input(Struct, gc=False):
    """Parameters of the tools that matter."""

    command: str | None = None
    file_path: str | None = None
    notebook_path: str | None = None
    old_string: str | None = None
    new_string: str | None = None
    content: str | None = None
    cron: str | None = None
    prompt: str | None = None
    id: str | None = None
    plan: str | None = None
    questions: Raw = Raw(b"[]")


class Question(Struct, gc=False):
    """What the tool AskUserQuestion asks."""

    question: str = ""


_INPUT: Final = msgspec.json.Decoder(Input)
_QUESTIONS: Final = msgspec.json.Decoder(list[Question])


def add_call(state: Session, tool: str, raw: Raw) -> Call:
    """Note a tool call; return what its result is joined with."""
    tool = clip(tool, 80)
    if tool not in state.turn.tools and len(state.turn.tools) < _MAX_TOOLS:
        state.turn.tools = [*state.turn.tools, tool]
    if tool not in _READ_ONLY:
        state.can_change = True
    if tool not in _WITH_INPUT:
        return Call(tool)
    try:
        given = _INPUT.decode(raw)
    except (msgspec.MsgspecError, RecursionError):
        return Call(tool)
    if tool == "Bash":
        command = " ".join((given.command or "")[:2_000].split())
        return Call(tool, clip(command, _MAX_LINE), is_test=_TEST.search(command) is not None)
    if tool == "CronCreate":
        return Call(tool, (given.cron or "")[:80], text=given.prompt or "")
    if tool in ASKING:
        return Call(tool, text=_question(given))
    if tool == "CronDelete":
        return Call(tool, (given.id or "")[:80])
    new = given.new_string or given.content or ""
    path = (given.file_path or given.notebook_path or "")[-_MAX_LINE:]
    return Call(tool, path, old=clip(given.old_string or "", _MAX_CODE), text=clip(new, _MAX_CODE))


def _question(given: Input) -> str:
    """Return what a person is asked; the first line of a plan that is to be approved."""
    try:
        asked = [one.question for one in _QUESTIONS.decode(given.questions)]
    except (msgspec.MsgspecError, RecursionError):
        asked = []
    return clip(" ".join(" ".join(filter(None, (*asked, first_line(given.plan or "")))).split()), _MAX_LINE)


def add_result(state: Session, call: Call, text: str, is_error: bool, at: str) -> None:
    """Note the result of a tool call; `text` is only needed for errors and test runs."""
    has_failed = is_error
    if call.is_test and not text.startswith(_REJECTED):
        has_failed = _add_test_run(state, call, text, is_error) is False
    if has_failed:
        if not text.startswith(_REJECTED):
            state.error_count += 1
            message = find_message(text, state.cwd)
            add_failure(state.turn, call.tool, message)
            if call.tool == "Bash":
                _open(state.turn, call.key, message, find_failed_tests(text))
    elif call.tool in _EDITS:
        _add_change(state, call, at)
    elif call.tool == "Bash":
        _close(state, call.key, at)


def add_failure(turn: Turn, tool: str, message: str) -> None:
    """Add an error to a turn, once."""
    failure = [tool, clip(message, _MAX_LINE)]
    if failure not in turn.failures and len(turn.failures) < _MAX_FAILURES:
        turn.failures = [*turn.failures, failure]


def _add_test_run(state: Session, call: Call, text: str, is_error: bool) -> bool | None:
    """Note a test run; return whether it passed, None if a pipe lost its status."""
    turn, found = state.turn, parse_results(text)
    failing = found.failing if found is not None else None
    if not failing and not is_error and (found is None or found.passed is None) and _PIPED.search(call.key):
        return None
    result = not (failing or is_error)
    turn.test_passed, turn.passed, turn.failed = result, found.passed if found else None, 0 if result else failing
    state.test_passed, state.test_command = result, call.key
    return result


def _open(turn: Turn, key: str, message: str, tests: dict[str, str]) -> None:
    """Note a failed command; a test that failed before and does not now was fixed."""
    before = next((one for one in turn.open_errors if one.key == key), None)
    others = [one for one in turn.open_errors if one is not before]
    turn.open_errors = [*others, OpenError(key, message, tests=tests)][-_MAX_OPEN:]
    if turn.fix is not None and turn.fix.key == key and turn.fix.message in tests.values():
        turn.fix = None
    if before is not None and before.edits and tests and tests.keys() < before.tests.keys():
        before.message = next(error for test, error in before.tests.items() if test not in tests)
        turn.fix = before


def find_failed_tests(text: str) -> dict[str, str]:
    """Return messages by failed test from pytest's summary; {} if it omits any."""
    text = text[-_MAX_ERROR_OUTPUT:]
    errors = [found[1].strip() for found in _REPORTED.finditer(text)]
    tests = {}
    for found in _FAILED.finditer(text):
        begin = found[2].strip().removesuffix("...")  # the summary is cut at the width of the terminal
        error = next((one for one in errors if one.startswith(begin)), found[2].strip())
        tests[clip(found[1], _MAX_LINE)] = clip(error, _MAX_LINE)
    counted = parse_results(text) if tests else None
    return tests if counted is not None and counted.failing == len(tests) <= _MAX_TESTS else {}


def _add_change(state: Session, call: Call, at: str) -> None:
    file = call.key.removeprefix(f"{state.cwd}/") if state.cwd else call.key
    state.change_count += 1
    state.changed_at = max(state.changed_at, at)
    if file not in state.changed and len(state.changed) < _MAX_FILES:
        state.changed = [*state.changed, file]
    turn = state.turn
    if file not in turn.files and len(turn.files) < _MAX_FILES:
        turn.files = [*turn.files, file]
    if not turn.open_errors:
        return
    for error in turn.open_errors:
        error.reason = error.reason or turn.text
        error.edits = [*error.edits, [file, call.old, call.text]][-_MAX_EDITS:]


def _close(state: Session, key: str, at: str) -> None:
    """Note that a command passed; what was changed since it failed is the fix."""
    turn = state.turn
    fixed = next((one for one in turn.open_errors if one.key == key), None)
    if fixed is None:
        return
    turn.open_errors = [one for one in turn.open_errors if one is not fixed]
    state.changed_at = max(state.changed_at, at)
    if fixed.edits:
        turn.fix = fixed


def find_message(text: str, cwd: str = "") -> str:
    """Return the line that describes the error, without exit code and project path."""
    text = _TAG.sub("", text[-_MAX_ERROR_OUTPUT:]).strip()
    text = _EXIT_CODE.sub("", text, count=1).strip() or text
    return find_error(text.replace(f"{cwd}/", "") if cwd else text)


def first_line(text: str) -> str:
    """Return the first line with a text, cut."""
    found = next((line.strip() for line in text[:4_000].splitlines() if line.strip()), "")
    return clip(found, _MAX_LINE)


def iteration_of(turn: Turn) -> Iteration:
    """Return a turn as the iteration of a loop."""
    is_passed = turn.is_met or turn.test_passed
    counts = ", ".join(f"{n:,} {word}" for n, word in ((turn.failed, "failed"), (turn.passed, "passed")) if n)
    results = None
    if turn.passed is not None or turn.failed is not None:
        results = Results(passed=turn.passed, failed=turn.failed)
    return Iteration(
        number=turn.number or None,
        at=parse_time(turn.at),
        action=turn.text or turn.prompt,
        is_prompt=not turn.text,
        result=turn.verdict or counts or turn.text,
        outcome=Outcome.SUCCESS if is_passed else Outcome.FAILURE if turn.test_passed is False else Outcome.UNKNOWN,
        duration_ms=turn.duration_ms,
        files=tuple(turn.files),
        failures=tuple(Failure(message=message) for _, message in turn.failures if message),
        fix=_fix_of(turn.fix, turn.text) if turn.fix is not None else None,
        results=results,
        tools=tuple(turn.tools),
    )


def _fix_of(fixed: OpenError, text: str) -> Fix:
    edits = [edit for edit in fixed.edits if len(edit) == 3]
    files = tuple(dict.fromkeys(file for file, _, _ in edits))
    from difflib import unified_diff  # not needed for lists of loops

    diffs = (unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="", n=1) for file, old, new in edits)
    diff = "\n".join(line for lines in diffs for line in lines)
    return Fix(description=fixed.reason or text, diff=diff, files=files, verified=True, error=fixed.message)
