"""Turns of an agent's session: what the agent did, its failures and fixes, and its test runs."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from core.adapters.command_output import find_error
from core.adapters.runner_summaries import parse_results
from core.adapters.values import clip
from core.base.shell_commands import is_read_only, is_test_run, parse_check
from core.records.debug_sessions import Failure, Fix, Results
from core.records.loops import Iteration, Outcome
from core.records.times import parse_time

MAX_FAILURES: Final = 10  # of one turn, the last ones
MAX_FILES: Final = 200
MAX_DIFF: Final = 1_500  # characters
MAX_TOOLS: Final = 20
COMPLETE: Final = "task_complete"  # a turn that ended as usual
_MAX_COMMAND: Final = 200


class Failed(Struct, array_like=True, gc=False):
    """A command that failed."""

    command: str
    error: str
    at: str = ""
    is_fixed: bool = False  # the same check passed later in the turn


class TestRun(Struct, array_like=True, gc=False):
    """A run of tests and its result."""

    command: str
    has_passed: bool
    passed: int | None = None
    failed: int | None = None

    @property
    def text(self) -> str:
        """Such as "pytest -q: passed"."""
        return f"{self.command}: {'passed' if self.has_passed else 'failed'}"


class Turn(Struct, array_like=True):
    """One turn: what a prompt started, up to its end."""

    id: str = ""
    started: str = ""
    ended: str = ""
    end: str = ""  # event that ended it, or the reason
    is_reported: bool = False  # its start was written, so that its end will be too
    prompt: str = ""
    text: str = ""  # last message of the agent
    error: str = ""
    error_kind: str = ""
    tools: list[str] = []
    files: list[str] = []
    failures: list[Failed] = []
    failed: int = 0  # number of failures
    diff: str = ""  # changes after a failure
    test: TestRun | None = None
    words: str = ""  # what the agent said since its last call of a tool
    reason: str = ""  # what it said directly before its last change after a failure

    def add_text(self, text: str) -> None:
        """Note what the agent said."""
        self.text, self.words = text or self.text, text or self.words

    def add_tool(self, name: str, is_change: bool = False) -> None:
        """Note a call of a tool, which may change files."""
        if is_change and self.failures and self.words:
            self.reason = self.words
        self.words = ""
        if name not in self.tools and len(self.tools) < MAX_TOOLS:
            self.tools.append(name)

    def add_change(self, file: str, old: str, new: str) -> None:
        """Add a replaced text of a file to the diff, if something failed before."""
        if not self.failures or len(self.diff) >= MAX_DIFF:
            return
        from difflib import unified_diff  # not needed for lists of loops

        lines = unified_diff(old.splitlines(), new.splitlines(), file, file, lineterm="", n=1)
        self.diff = clip("\n".join(filter(None, (self.diff, *lines))), MAX_DIFF)

    def add_file(self, name: str) -> None:
        if name not in self.files and len(self.files) < MAX_FILES:
            self.files.append(name)


def note_command(turn: Turn, command: str, exit_code: int | None, output: str, at: str) -> bool:
    """Note the result of a command, or of a patch if the command is ""; return whether it failed.

    `output` is only needed for failures and test runs.
    """
    is_search = exit_code == 1 and bool(command) and is_read_only(command)  # such as `grep` without a match
    has_failed = bool(exit_code) and not is_search
    if has_failed:
        turn.failures.append(Failed(clip(command, _MAX_COMMAND), find_error(output) or f"exit code {exit_code}", at))
        del turn.failures[:-MAX_FAILURES]
        turn.failed += 1
    if command and exit_code is not None and is_test_run(command):
        if not has_failed:
            check = parse_check(command)[0]
            for failure in turn.failures:
                failure.is_fixed = failure.is_fixed or parse_check(failure.command)[0] == check
        results = parse_results(output)
        counts = (results.passed, results.failing) if results is not None else (None, None)
        turn.test = TestRun(clip(command, _MAX_COMMAND), not has_failed, *counts)
    return has_failed


def can_change_files(command: str) -> bool:
    """Return whether a command may change files of the project: it neither only reads nor only checks."""
    return bool(command) and not is_read_only(command) and not parse_check(command)[0]


def make_iteration(number: int, turn: Turn) -> Iteration:
    """Return a turn as an iteration of a loop; its outcome is that of its last test run."""
    started, ended = parse_time(turn.started), parse_time(turn.ended)
    test = turn.test
    outcome = Outcome.UNKNOWN
    if turn.error or test is not None:
        outcome = Outcome.SUCCESS if test is not None and test.has_passed and not turn.error else Outcome.FAILURE
    is_fixed = outcome is Outcome.SUCCESS and any(one.is_fixed for one in turn.failures)
    words = turn.reason or turn.text
    fix = Fix(description=words, diff=turn.diff, files=tuple(turn.files), verified=True)
    end = "" if turn.end == COMPLETE else turn.end
    is_counted = test is not None and (test.passed is not None or test.failed is not None)
    return Iteration(
        number=number,
        at=ended or started,
        action=turn.text or turn.prompt,
        is_prompt=not turn.text,
        result="; ".join(filter(None, (test.text if test is not None else "", turn.error, end))),
        outcome=outcome,
        duration_ms=max((ended - started).total_seconds() * 1000, 0) if started and ended else None,
        files=tuple(turn.files),
        failures=tuple(Failure(message=one.error) for one in turn.failures),
        fix=fix if is_fixed and (words or turn.diff) else None,
        results=Results(passed=test.passed, failed=test.failed) if test is not None and is_counted else None,
        tools=tuple(turn.tools),
    )
