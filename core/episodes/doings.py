"""What the log of an attempt amounts to: counts, what failed and whether it went away, files, the last check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Final

from msgspec import Struct

from core.extraction.wording import line
from core.records.episodes import Action
from core.records.loops import Outcome
from core.text import MAX_SUBJECT

ACTION_TYPES: Final = ("read", "write", "bash", "grep", "glob", "task", "edit")
"""(1) action `type`."""
CHANGING: Final = frozenset({"write", "edit"})
MAX_FAILURES: Final = 1000
"""Different failures that are told apart; those that come after are only counted."""
_FILE_PARAMS: Final = ("file_path", "file", "path", "notebook_path", "filename")
_COMMAND_PARAMS: Final = ("command", "cmd")
_CHECK: Final = re.compile(
    r"\b(?:tests?|spec|pytest|unittest|tox|jest|vitest|mocha|tsc|mypy|pyright|lint|eslint|ruff|flake8|build|check|verify)\b"
)
"""What a command is called that checks the work: tests, types, style, build."""
_NUMBER: Final = re.compile(r"\d+")
_MAX_WHAT: Final = 120


class Failing(Struct, kw_only=True):
    """One thing that went wrong, however often.

    Attributes:
        what: The command, or the tool and the file it was used on.
        message: The error as it was told the first time, on one line.
        solved: Whether the same was done later without an error.
        changed: The files that were changed between its last failure and that.
    """

    what: str
    message: str
    times: int = 1
    last: int = 0
    solved: bool = False
    changed: tuple[str, ...] = ()


class Doings(Struct, kw_only=True):
    """What was done in an attempt.

    Attributes:
        actions, errors: How many, and how many of these failed.
        iterations: The highest that an action names, 0 if none does.
        types: How many of each type.
        files: Those that were changed, in the order of their first change.
        failures: Most frequent first.
        check: How the last check came out, None where there was none or something was changed after it.
        ended_wrong: Whether the last action that tells its result failed.
        last_at: When the last action was that tells its time.
    """

    actions: int = 0
    errors: int = 0
    iterations: int = 0
    types: dict[str, int] = {}
    files: tuple[str, ...] = ()
    failures: tuple[Failing, ...] = ()
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


def doings(actions: Iterable[Action]) -> Doings:
    """What the actions of one attempt, in the order of the log, amount to."""
    tally = _Tally()
    for action in actions:
        tally.take(action)
    return tally.done()


class _Tally:
    """The log so far."""

    def __init__(self) -> None:
        self._done = Doings()
        self._types: Counter[str] = Counter()
        self._files: dict[str, None] = {}
        self._edits: list[tuple[int, str]] = []
        self._failures: dict[tuple[str, str], Failing] = {}
        self._unsolved: dict[str, list[Failing]] = {}

    def take(self, action: Action) -> None:
        done = self._done
        done.actions += 1
        done.last_at = action.at or done.last_at
        done.iterations = max(done.iterations, action.iteration or 0)
        self._types[action.type] += 1
        if action.type in CHANGING and not action.went_wrong:
            done.check = None
            if file := _param(action, _FILE_PARAMS):
                self._files.setdefault(file)
                self._edits.append((done.actions, file))
        if action.success is not None or action.went_wrong:
            self._judge(action)

    def _judge(self, action: Action) -> None:
        done, what = self._done, what_of(action)
        done.ended_wrong = action.went_wrong
        if action.type == "bash" and _CHECK.search(_param(action, _COMMAND_PARAMS)[:MAX_SUBJECT]):
            done.check = not action.went_wrong
        if not action.went_wrong:
            for failing in self._unsolved.pop(what, ()):
                failing.solved = True
                failing.changed = tuple(dict.fromkeys(file for at, file in self._edits if at > failing.last))
            return
        done.errors += 1
        message = line(action.error.strip().partition("\n")[0]) or "no message"
        key = what, _NUMBER.sub("0", message)
        failing = self._failures.get(key) or Failing(what=what, message=message, times=0)
        if key not in self._failures and len(self._failures) == MAX_FAILURES:
            return
        self._failures[key] = failing
        failing.times += 1
        failing.last, failing.solved, failing.changed = done.actions, False, ()
        unsolved = self._unsolved.setdefault(what, [])
        if failing not in unsolved:
            unsolved.append(failing)

    def done(self) -> Doings:
        self._done.types = dict(self._types)
        self._done.files = tuple(self._files)
        self._done.failures = tuple(sorted(self._failures.values(), key=lambda failing: -failing.times))
        return self._done


def what_of(action: Action) -> str:
    """What an action did, on a short line: its command, else its tool and its file."""
    told = _param(action, _COMMAND_PARAMS)
    if not told:
        told = " ".join(part for part in (action.tool or action.type, _param(action, _FILE_PARAMS)) if part)
    return line(told, _MAX_WHAT) or "an action"


def _param(action: Action, names: Iterable[str]) -> str:
    params = dict(action.params)
    return next((params[name] for name in names if params.get(name)), "")
