"""Summarize an action log: failures, solutions, changes, checks, repeated runs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct

from core.base.masking import mask_secrets
from core.base.regexes import lazy_regex
from core.base.shell_commands import is_read_only, parse_check
from core.base.text import one_line
from core.records.loops import Outcome
from core.tasks.changes import edits_files

if TYPE_CHECKING:
    from core.records.episodes import Action
    from core.sources.episodes import Actions


_MAX_TEXT: Final = 20_000
_MAX_WORDS: Final = 60
_TAIL: Final = re.compile(
    r"\s*(?:2>&1|&>|>&2|2>\s?/dev/null|>\s?/dev/null)"
    r"|\s*\|&?\s*(?:tail|head|grep|tee|cat|less|sed|awk|sort|tac)\b[^|;&]*"
    r"|\s*(?:;|\|\||&&)\s*(?:echo|true|printf|exit)\b[^|;&]*$"
)
"""Parts of a command that only show or hide its output and result."""
_PLACE: Final = re.compile(r"\s*cd\s+\S+\s*(?:&&|;)\s*")
_SHELL: Final = frozenset({"bash", "sh", "dash", "zsh", "."})
_RUNNERS: Final = frozenset({"time", "timeout", "nice", "env", "npx", "uv", "poetry", "run", "exec", "sudo", "command"})
_QUIET: Final = lazy_regex(r"-{1,2}(?:q|v+|s|x|quiet|verbose|silent|no-color|color(?:=\w+)?)$")


class ActionCommand(NamedTuple):
    """Command of an action; two commands are equal if the actions ran the same."""

    whole: tuple[str, ...]  # the text of a shell command; for other tools, the tool and its parameters
    check: tuple[str, ...] = ()  # test runner, type checker, build or linter that a shell command runs, or ()
    words: tuple[str, ...] = ()  # arguments of the check that select files or tests; () if it checks everything
    parts: tuple[str, ...] = ()  # the programs of a shell command, each with its arguments

    @property
    def key(self) -> tuple[str, ...]:
        """Return what commands share if one may cover the other: check or programs."""
        return self.check or tuple(map(_head, self.parts)) or self.whole

    def covers(self, earlier: ActionCommand) -> bool:
        """Whether the command checks everything that an earlier command checked."""

        def is_covered(word: str) -> bool:
            """Whether an earlier argument equals a word or is inside this file or folder."""
            inside = (f"{word}/", f"{word}::")
            return word in earlier.words or (
                not word.startswith("-") and any(other.startswith(inside) for other in earlier.words)
            )

        if self.whole == earlier.whole:
            return True
        if self.check or earlier.check:
            return self.check == earlier.check and all(map(is_covered, self.words))
        return bool(earlier.parts) and all(any(_extends(one, part) for one in self.parts) for part in earlier.parts)


def _extends(one: str, other: str) -> bool:
    """Return whether two programs and their files are the same; options may differ."""
    files, others = ({word for word in part.split() if word[:1] != "-"} for part in (one, other))
    return _head(one) == _head(other) and files == others


def _head(part: str) -> str:
    """Return a program and its first file or subcommand, else its first option."""
    program, *words = part.split()
    return " ".join((program, *([word for word in words if word[:1] != "-"] or words)[:1]))


def parse_command(action: Action) -> ActionCommand:
    text = action.command
    if not text:
        return ActionCommand((action.tool or action.type, *(f"{name}={value}" for name, value in action.params)))
    return _parse(text[:_MAX_TEXT])


@lru_cache(1024)  # agents repeat their commands
def _parse(text: str) -> ActionCommand:
    bare = _PLACE.sub("", _TAIL.sub("", text), count=1) if len(text) < _MAX_TEXT else text
    whole = " ".join(bare.split()) or " ".join(text.split())
    check, words = parse_check(bare)
    return ActionCommand((whole,), check, words, () if check else tuple(filter(None, map(_program, _split(whole)))))


def _split(text: str) -> list[str]:
    return [] if "<<" in text else re.split(r"\s*(?:&&|;|\|\|)\s*", text)


def _program(part: str) -> str:
    """Return a program and its arguments, without a script's shell or quiet options."""
    words = part.split()[:_MAX_WORDS]
    while words and (words[0] in _RUNNERS or re.fullmatch(r"\d+[smh]?", words[0])):
        del words[0]
    if len(words) > 1 and words[0] in _SHELL and not words[1].startswith("-"):
        del words[0]
    words = [word.removeprefix("./") if n == 0 else word for n, word in enumerate(words) if not _QUIET.fullmatch(word)]
    return " ".join(words) if words and words[0] not in ("cd", "export", "set") else ""


# Logs

MAX_SUMMARIZED: Final = 2_000  # newest actions that are summarized; of earlier ones, only failures are counted
MAX_SUMMARIZED_BYTES: Final = 8 << 20  # maximum size of these actions
MAX_FAILURES: Final = 1000  # maximum number of distinct failures in a summary; further ones are only counted
MAX_MISSED: Final = 20  # stop to search for covered runs after this number of runs that are not covered
MAX_CHANGED: Final = 1000  # maximum number of files in `LoggedFailure.changed`, the last ones
MAX_TRIED: Final = 100  # maximum number of files in `LoggedFailure.tried`, the last ones
MAX_RAN: Final = 3  # maximum number of commands in `LoggedFailure.ran`, the last ones
_NUMBER: Final = lazy_regex(r"\d+")
_MAX_WHAT: Final = 120
_MAX_ERROR: Final = 20_000  # maximum number of characters that are searched for the most informative line
_MAX_SKIPPED: Final = 20  # maximum number of uninformative lines that are skipped
_TRACEBACK: Final = "Traceback (most recent call last):"
_RAISED: Final = lazy_regex(r"[A-Za-z_][\w.]{0,200}(?:Error|Exception|Interrupt|Exit|Warning)\b")
_UNINFORMATIVE: Final = lazy_regex(
    r"(?i:(?:command |process )?(?:failed|exited|exit)(?: with)?(?: exit)?(?: code| status)?:? \d{1,3}\.?$)"
    r"|[>$] |\W*$|(?:FAIL|RUNS) "
)  # lines that do not describe an error: exit codes, headers of test runners, shell prompts, separators
_ERROR_LINE: Final = lazy_regex(
    r"E {3,}(?=\S)|\s*(?:[●✕✗✖×] |--- FAIL: |thread '.{1,80}' .{0,20}panicked at |fatal: |npm (?:ERR!|error) \S)"
    r"|.{0,300}?(?:\b(?:error|Error|ERROR)(?: ?\[\w{1,40}\]| TS\d{1,6})?: |:\d{1,7}(?::\d{1,7})? +error )"
)  # beginnings of lines with an error in the output of a test runner, compiler or linter
CHECK: Final = "check"  # a failed test, build, type check or linter
COMMAND: Final = "command"
TOOL: Final = "tool"


class LoggedFailure(Struct, kw_only=True):
    """One failure, which may have occurred several times."""

    what: str  # the command, or the tool and the file
    message: str  # most informative line of the first error
    of: str = TOOL  # `CHECK`, `COMMAND` or `TOOL`
    times: int = 0  # number of failures of `what` with this error
    runs: int = 0  # number of failures of `what` with any error
    last: int = 0  # number of the last failed action
    solved: bool = False  # whether a later run that covers it succeeded
    replaced: bool = False  # whether a later run that covers it failed with another error
    changed: tuple[str, ...] = ()  # files changed between the last failure and the solution or end of the log
    tried: tuple[str, ...] = ()  # files changed between two failures with this error
    ran: tuple[str, ...] = ()  # commands (not read-only) that succeeded between the last failure and the solution

    @property
    def key(self) -> tuple[str, str]:
        """What failed, and its message without numbers; the same for all occurrences."""
        return self.what, _NUMBER.sub("0", self.message)


class LogSummary(Struct, kw_only=True):
    """Counts, changes and failures in the log of an attempt."""

    actions: int = 0
    errors: int = 0  # number of failed actions
    iterations: int = 0  # highest iteration of an action; 0 if unknown
    files: tuple[str, ...] = ()  # changed files, in the order of their first change
    failures: tuple[LoggedFailure, ...] = ()  # most frequent first
    check: bool | None = None
    """Whether the last check passed; None without a check, if its result is unknown, or if a file was changed since."""
    last_failed: bool = False  # whether the last action with a known result failed
    last_at: datetime | None = None  # time of the last action with a time

    @property
    def outcome(self) -> Outcome:
        """Outcome that the log proves; unknown if it proves none.

        It is the result of the last check, unless a file was changed after it. A check is a test, build, type check
        or linter, or any command that failed and was run again after a change of a file.
        Otherwise, the outcome is a failure if the last action failed. Only a check can prove a success.
        """
        if self.check is not None:
            return Outcome.SUCCESS if self.check else Outcome.FAILURE
        return Outcome.FAILURE if self.last_failed else Outcome.UNKNOWN


def summarize_newest(actions: Actions) -> LogSummary:
    """Summarize the newest `MAX_SUMMARIZED` actions; counts are of the whole log."""
    start = actions.find_newest(MAX_SUMMARIZED, MAX_SUMMARIZED_BYTES)
    return summarize_log(actions[start:], LogSummary(actions=start, errors=bisect_left(actions.errors, start)))


def summarize_log(actions: Iterable[Action], earlier: LogSummary | None = None) -> LogSummary:
    """Summarize actions in log order; `earlier` counts those before them."""
    tally = _Tally(earlier or LogSummary())
    for action in actions:
        tally.add(action)
    return tally.done()


class _Unsolved:
    """Unsolved failures by command, in the order of their last occurrence."""

    def __init__(self) -> None:
        self._alike: dict[tuple[str, ...], _Runs] = {}
        self._last_run: dict[int, ActionCommand] = {}

    def add(self, command: ActionCommand, failing: LoggedFailure) -> None:
        """Add a failure, or move it to the end if it is known."""
        self._remove(failing)
        alike = self._alike.setdefault(command.key, {})
        failed = alike[command] = alike.pop(command, {})
        failed[id(failing)] = failing
        self._last_run[id(failing)] = command

    def solve(self, command: ActionCommand) -> list[LoggedFailure]:
        alike = self._alike.get(command.key, {})
        solved = [failing for earlier in _find_covered(command, alike) for failing in alike[earlier].values()]
        for failing in solved:
            self._remove(failing)
        return solved

    def replaced(self, failing: LoggedFailure) -> bool:
        """Whether a later run that covers the failed one failed with another error."""
        command = self._last_run[id(failing)]
        alike = self._alike[command.key]
        runs = (run for run in (command, *islice(reversed(alike), MAX_MISSED)) if run.covers(command))
        return any(next(reversed(alike[run].values())).last > failing.last for run in runs)

    def _remove(self, failing: LoggedFailure) -> None:
        command = self._last_run.pop(id(failing), None)
        if command is None:
            return
        alike = self._alike[command.key]
        del alike[command][id(failing)]
        if not alike[command]:
            del alike[command]
        if not alike:
            del self._alike[command.key]


_Runs = dict[ActionCommand, dict[int, LoggedFailure]]  # unsolved failures by command and `id()`


def _find_covered(command: ActionCommand, alike: _Runs) -> list[ActionCommand]:
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
    def __init__(self, earlier: LogSummary) -> None:
        self._done = earlier
        self._files: dict[str, None] = {}
        self._last_edit: dict[str, int] = {}
        self._failures: dict[tuple[str, str], LoggedFailure] = {}
        self._unsolved = _Unsolved()
        self._ran: deque[tuple[int, str]] = deque(maxlen=MAX_RAN)
        self._changed = 0  # number of the last action that changed files
        self._failed_at: dict[tuple[str, ...], int] = {}  # number of the first failure, by command

    def add(self, action: Action) -> None:
        done = self._done
        done.actions += 1
        done.last_at = action.at or done.last_at
        done.iterations = max(done.iterations, action.iteration or 0)
        if action.changed_file or (not action.has_failed and edits_files(action.command)):
            done.check, self._changed = None, done.actions
            if file := action.target:
                self._files.setdefault(file)
                self._last_edit.pop(file, None)  # re-insert, to keep the order of the last change
                self._last_edit[file] = done.actions
        if action.success is not None or action.has_failed:
            self._judge(action)
        elif parse_command(action).check:
            done.check, done.last_failed = None, False

    def _judge(self, action: Action) -> None:
        command = parse_command(action)
        self._done.last_failed = action.has_failed
        if command.check or self._is_repeated(action, command):
            self._done.check = not action.has_failed
        if action.has_failed:
            self._fail(action, command)
            return
        for failing in self._unsolved.solve(command):
            failing.solved, failing.changed = True, self._changed_since(failing.last)
            failing.ran = tuple(dict.fromkeys(what for number, what in self._ran if number > failing.last))
        if action.command and not command.check and not is_read_only(action.command):
            self._ran.append((self._done.actions, _describe(action)))

    def _is_repeated(self, action: Action, command: ActionCommand) -> bool:
        """Whether a shell command failed before, and a file was changed since."""
        if not action.command or is_read_only(action.command):
            return False
        failed_at = self._failed_at.get(command.key)
        if failed_at is None:
            if action.has_failed and len(self._failed_at) < MAX_FAILURES:
                self._failed_at[command.key] = self._done.actions
            return False
        return self._changed > failed_at

    def _fail(self, action: Action, command: ActionCommand) -> None:
        done = self._done
        done.errors += 1
        new_failure = describe_failed(action)
        if new_failure.key not in self._failures and len(self._failures) == MAX_FAILURES:
            return
        new_failure.of = CHECK if command.check else COMMAND if action.command else TOOL
        failing = self._failures.setdefault(new_failure.key, new_failure)
        # If a failure returns after it was solved, it has another cause, so earlier changes are not listed.
        new = self._changed_since(failing.last, MAX_TRIED) if failing.times and not failing.solved else ()
        tried = () if failing.solved else failing.tried
        failing.tried = tuple(dict.fromkeys((*tried, *new)))[-MAX_TRIED:] if new else tried
        failing.times += 1
        failing.last, failing.solved, failing.changed, failing.ran = done.actions, False, (), ()
        self._unsolved.add(command, failing)

    def done(self) -> LogSummary:
        self._done.files = tuple(self._files)
        found, runs = self._failures.values(), Counter[str]()
        for failing in found:
            runs[failing.what] += failing.times
        for failing in found:
            failing.runs = runs[failing.what]
            if not failing.solved:
                failing.changed = self._changed_since(failing.last)
                failing.replaced = self._unsolved.replaced(failing)
        self._done.failures = tuple(sorted(found, key=lambda failing: (-failing.runs, -failing.times)))
        return self._done

    def _changed_since(self, number: int, most: int = MAX_CHANGED) -> tuple[str, ...]:
        """Return the files changed after an action, in the order of their last change."""
        since = takewhile(lambda edit: edit[1] > number, reversed(self._last_edit.items()))
        return tuple(file for file, _ in islice(since, most))[::-1]


def describe_failed(action: Action) -> LoggedFailure:
    """Return an action's failure; secrets are masked, as reflections are shared."""
    message = pick_error_line(action.error, action.output)
    return LoggedFailure(what=mask_secrets(_describe(action)), message=mask_secrets(message))


def _describe(action: Action) -> str:
    text = action.command or " ".join(part for part in (action.tool or action.type, action.target) if part)
    return one_line(text, _MAX_WHAT) or "an action"


def pick_error_line(error: str, printed: str) -> str:
    """Return the most informative line of the error text or the output of an action."""
    lines = [text for text in error[:_MAX_ERROR].splitlines() if text.strip()]
    if any(text.strip() == _TRACEBACK for text in lines):
        raised = [text for text in lines if _RAISED.match(text)]
        if raised:
            return one_line(raised[-1])
    error_line = next((text for text in lines if _ERROR_LINE.match(text)), None)
    if error_line is not None:
        return one_line(error_line.removeprefix("E "))
    informative = (text for text in lines[:_MAX_SKIPPED] if not _UNINFORMATIVE.match(text.strip()))
    if found := one_line(next(informative, "")):
        return found
    output = [text for text in printed[-_MAX_ERROR:].splitlines() if text.strip()]
    return one_line((output or lines or ["no message"])[-1]) or "no message"
