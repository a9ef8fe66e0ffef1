"""What the log of an attempt amounts to: counts, what failed and whether it went away, files, the last check."""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from itertools import islice, takewhile
from typing import Final

from msgspec import Struct

from core.base.record_text import one_line
from core.episodes.commands import ActionCommand, is_read_only, parse_command
from core.records.episodes import Action
from core.records.loops import Outcome

ACTION_TYPES: Final = ("read", "write", "bash", "grep", "glob", "task", "edit")
"""(1) action `type`."""
MAX_FAILURES: Final = 1000
"""Different failures that are told apart; those that come after are only counted."""
MAX_MISSED: Final = 20
"""After so many failing runs of a check, the latest first, that a run of a part of it does not cover, no further ones
are looked at."""
MAX_CHANGED: Final = 1000
"""Files that are told to have changed since a failure, the last ones."""
MAX_TRIED: Final = 100
"""Files that are told to have changed between failures."""
MAX_RAN: Final = 3
"""Commands that are told to have been run since a failure, the last ones."""
_NUMBER: Final = re.compile(r"\d+")
_MAX_WHAT: Final = 120
_MAX_ERROR: Final = 20_000
"""Characters of an error that are looked through for the line that tells most."""
_MAX_SKIPPED: Final = 20
"""Lines of it that may tell nothing."""
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = re.compile(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Warning)\b")
_UNTELLING: Final = re.compile(
    r"(?i:(?:command |process )?(?:failed|exited|exit)(?: with)?(?: exit)?(?: code| status)?:? \d{1,3}\.?$)"
    r"|[>$] |\W*$|(?:FAIL|RUNS) "
)
"""Lines that name no error: the code of an exit, what a runner or a shell says before it runs, rules."""
_TELLING: Final = re.compile(
    r"E {3,}(?=\S)|\s*(?:[●✕✗✖×] |--- FAIL: |thread '.{1,80}' .{0,20}panicked at |fatal: |npm (?:ERR!|error) \S)"
    r"|.{0,300}?(?:\b(?:error|Error|ERROR)(?: ?\[\w{1,40}\]| TS\d{1,6})?: |:\d{1,7}(?::\d{1,7})? +error )"
)
"""The beginning of a line that names an error amid all that a test, a compiler or a linter printed."""


CHECK: Final = "check"
"""What failed is a test, a build, a type check or a linter."""
COMMAND: Final = "command"
TOOL: Final = "tool"


class LoggedFailure(Struct, kw_only=True):
    """One thing that went wrong, however often.

    Attributes:
        what: The command, or the tool and the file it was used on.
        message: The error as it was told the first time: the line that tells most of it.
        of: `CHECK`, `COMMAND` or `TOOL`.
        times: How often it failed with this error.
        runs: How often it failed with any error.
        last: The number of the action that failed last.
        solved: Whether the same, or the same check of as much or more, came out well later.
        replaced: Whether it failed later with another error, and not with this one.
        changed: The files that were changed since its last failure, until it was solved; at most `MAX_CHANGED`.
        tried: Those that were changed between its failures, in vain; at most `MAX_TRIED`.
        ran: The commands that came out well between its last failure and its solution, without those that only look
            at something; at most `MAX_RAN`.
    """

    what: str
    message: str
    of: str = TOOL
    times: int = 0
    runs: int = 0
    last: int = 0
    solved: bool = False
    replaced: bool = False
    changed: tuple[str, ...] = ()
    tried: tuple[str, ...] = ()
    ran: tuple[str, ...] = ()


class LogSummary(Struct, kw_only=True):
    """What was done in an attempt.

    Attributes:
        actions, errors: How many, and how many of these failed.
        iterations: The highest that an action names, 0 if none does.
        files: Those that were changed, in the order of their first change.
        failures: Those of what failed most often first.
        check: How the last check came out, None where there was none or something was changed after it.
        ended_wrong: Whether the last action that tells its result failed.
        last_at: When the last action was that tells its time.
    """

    actions: int = 0
    errors: int = 0
    iterations: int = 0
    files: tuple[str, ...] = ()
    failures: tuple[LoggedFailure, ...] = ()
    check: bool | None = None
    ended_wrong: bool = False
    last_at: datetime | None = None

    @property
    def outcome(self) -> Outcome:
        """What the log proves, unknown where it proves nothing; (1) `determine_outcome`.

        The last check (a test, a build, a type check, a linter) decides, unless a file was changed after it.
        Without one, a last action that failed is a failure. Nothing else is taken for a success.
        """
        if self.check is not None:
            return Outcome.SUCCESS if self.check else Outcome.FAILURE
        return Outcome.FAILURE if self.ended_wrong else Outcome.UNKNOWN


def summarize_log(actions: Iterable[Action]) -> LogSummary:
    """What the actions of one attempt, in the order of the log, amount to."""
    tally = _Tally()
    for action in actions:
        tally.take(action)
    return tally.done()


class _Unsolved:
    """What failed and did not come out well since: by what was run, in the order of the last failure."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], _Runs] = {}
        self._last_run: dict[int, ActionCommand] = {}

    def add(self, command: ActionCommand, failing: LoggedFailure) -> None:
        """It failed, perhaps once more."""
        self._remove(failing)
        alike = self._alike.setdefault(_kind(command), {})
        failed = alike[command] = alike.pop(command, {})
        failed[id(failing)] = failing
        self._last_run[id(failing)] = command

    def solve(self, command: ActionCommand) -> list[LoggedFailure]:
        """What a run that came out well proves to be solved; it is taken out."""
        alike = self._alike.get(_kind(command), {})
        solved = [failing for earlier in _covered(command, alike) for failing in alike[earlier].values()]
        for failing in solved:
            self._remove(failing)
        return solved

    def replaced(self, failing: LoggedFailure) -> bool:
        """Whether a later run of as much or more failed, too, but with another error."""
        command = self._last_run[id(failing)]
        alike = self._alike[_kind(command)]
        runs = (run for run in (command, *islice(reversed(alike), MAX_MISSED)) if run.covers(command))
        return any(next(reversed(alike[run].values())).last > failing.last for run in runs)

    def _remove(self, failing: LoggedFailure) -> None:
        command = self._last_run.pop(id(failing), None)
        if command is None:
            return
        alike = self._alike[_kind(command)]
        del alike[command][id(failing)]
        if not alike[command]:
            del alike[command]
        if not alike:
            del self._alike[_kind(command)]


_Runs = dict[ActionCommand, dict[int, LoggedFailure]]
"""Commands, each with what failed when it ran last."""


def _kind(command: ActionCommand) -> tuple[str, ...]:
    """What only commands have in common of which one may cover another."""
    return command.check or command.whole


def _covered(command: ActionCommand, alike: _Runs) -> list[ActionCommand]:
    """Those of the commands that looked at no more than this one."""
    if not command.words:
        return list(alike)
    covered = {command: None} if command in alike else {}
    missed = 0
    for earlier in reversed(alike):
        if command.covers(earlier):
            covered[earlier] = None
        elif (missed := missed + 1) == MAX_MISSED:
            break
    return list(covered)


class _Tally:
    """The log so far."""

    def __init__(self) -> None:
        self._done = LogSummary()
        self._files: dict[str, None] = {}
        self._last_edit: dict[str, int] = {}
        self._failures: dict[tuple[str, str], LoggedFailure] = {}
        self._unsolved = _Unsolved()
        self._ran: deque[tuple[int, str]] = deque(maxlen=MAX_RAN)

    def take(self, action: Action) -> None:
        done = self._done
        done.actions += 1
        done.last_at = action.at or done.last_at
        done.iterations = max(done.iterations, action.iteration or 0)
        if action.changed_file:
            done.check = None
            if file := action.target:
                self._files.setdefault(file)
                self._last_edit.pop(file, None)  # so that they stand in the order of their last change
                self._last_edit[file] = done.actions
        if action.success is not None or action.has_failed:
            self._judge(action)

    def _judge(self, action: Action) -> None:
        command = parse_command(action)
        self._done.ended_wrong = action.has_failed
        if command.check:
            self._done.check = not action.has_failed
        if action.has_failed:
            self._fail(action, command)
            return
        for failing in self._unsolved.solve(command):
            failing.solved, failing.changed = True, self._changed_since(failing.last)
            failing.ran = tuple(dict.fromkeys(what for number, what in self._ran if number > failing.last))
        if action.command and not command.check and not is_read_only(action.command):
            self._ran.append((self._done.actions, _what_of(action)))

    def _fail(self, action: Action, command: ActionCommand) -> None:
        done = self._done
        done.errors += 1
        what, message = _what_of(action), _message_of(action)
        key = what, _NUMBER.sub("0", message)
        if key not in self._failures and len(self._failures) == MAX_FAILURES:
            return
        of = CHECK if command.check else COMMAND if action.command else TOOL
        failing = self._failures.setdefault(key, LoggedFailure(what=what, message=message, of=of))
        # What came back after it was solved has other causes: nothing was tried against it in vain yet.
        new = self._changed_since(failing.last, MAX_TRIED) if failing.times and not failing.solved else ()
        tried = () if failing.solved else failing.tried
        failing.tried = tuple(dict.fromkeys((*tried, *new)))[-MAX_TRIED:] if new else tried
        failing.times += 1
        failing.last, failing.solved, failing.changed, failing.ran = done.actions, False, (), ()
        self._unsolved.add(command, failing)

    def done(self) -> LogSummary:
        self._done.files = tuple(self._files)
        runs = Counter[str]()
        for failing in self._failures.values():
            runs[failing.what] += failing.times
        for failing in self._failures.values():
            failing.runs = runs[failing.what]
            if not failing.solved:
                failing.changed = self._changed_since(failing.last)
                failing.replaced = self._unsolved.replaced(failing)
        found = self._failures.values()
        self._done.failures = tuple(sorted(found, key=lambda failing: (-failing.runs, -failing.times)))
        return self._done

    def _changed_since(self, number: int, most: int = MAX_CHANGED) -> tuple[str, ...]:
        """The files that were changed after an action, in the order of their last change; at most so many."""
        since = takewhile(lambda edit: edit[1] > number, reversed(self._last_edit.items()))
        return tuple(file for file, _ in islice(since, most))[::-1]


def _what_of(action: Action) -> str:
    """What an action did, on a short line: its command, else its tool and its file."""
    told = action.command or " ".join(part for part in (action.tool or action.type, action.target) if part)
    return one_line(told, _MAX_WHAT) or "an action"


def _message_of(action: Action) -> str:
    """The line of an error that tells most; of one that says nothing the last of what came out."""
    lines = [text for text in action.error[:_MAX_ERROR].splitlines() if text.strip()]
    if any(text.strip() == _TRACEBACK for text in lines):
        raised = [text for text in lines if _RAISED.match(text)]
        if raised:
            return one_line(raised[-1])
    amid = next((text for text in lines if _TELLING.match(text)), None)
    if amid is not None:
        return one_line(amid.removeprefix("E "))
    telling = (text for text in lines[:_MAX_SKIPPED] if not _UNTELLING.match(text.strip()))
    if found := one_line(next(telling, "")):
        return found
    said = [text for text in action.output[-_MAX_ERROR:].splitlines() if text.strip()]
    return one_line((said or lines or ["no message"])[-1]) or "no message"
