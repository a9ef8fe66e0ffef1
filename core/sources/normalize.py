"""Normalize spellings and read fields; docs/file-formats.md#words-and-spellings.

Every function accepts any decoded value and returns None, "" or () for an invalid one. With `Fields`, it becomes a
finding too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict, replace

from core.base.text import visible_line
from core.base.validation import MAX_COUNT
from core.records.episodes import TaskStatus
from core.records.findings import Finding, Severity
from core.records.loops import LoopStatus, Outcome
from core.records.times import parse_time

LOOP_ID: Final = ("loop_id", "loopId", "id")
TASK: Final = ("task", "objective", "task_description", "task_summary", "description")
CRITERIA: Final = ("completion", "completion_criteria", "completionCriteria")
ITERATION: Final = ("currentIteration", "current_iteration", "iteration")
ITERATION_NUMBER: Final = ("number", "iteration", "iteration_number")
MAX_ITERATIONS: Final = ("maxIterations", "max_iterations")
STARTED: Final = ("startTime", "started_at", "start_time", "startedAt", "startTimeMs", "startTimestamp")
UPDATED: Final = ("lastUpdate", "last_updated", "updated_at", "updatedAt")
ENDED: Final = ("endTime", "completed_at", "completedAt", "end_time", "endTimestamp")

_T = TypeVar("_T")


def _by_word(convert: Callable[[str], _T], **words: str) -> dict[str, _T]:
    """Map each spelling to the value that it means."""
    return {word: convert(value) for value, spellings in words.items() for word in spellings.split()}


_LOOP_STATUSES: Final = _by_word(
    LoopStatus,
    running="running in_progress active starting analyzing resumed",
    waiting="waiting pending queued",
    paused="paused interrupted shutting_down",
    completing="completing",
    recovering="recovering",
    completed="completed complete success succeeded done passed",
    partial="partial partial_success partially_completed",
    failed="failed failure error blocked",
    limit="limit_reached max_iterations timeout budget_exceeded",
    aborted="aborted cancelled canceled",
    crashed="crashed",
)
_TASK_STATUSES: Final = _by_word(
    TaskStatus,
    running="running active in_progress",
    paused="paused waiting",
    completed="completed success done complete",
    failed="failed failure timeout",
    unknown="unknown",
)
_OUTCOMES: Final = _by_word(
    Outcome,
    success="success passed completed complete succeeded done",
    partial="partial partial_success incomplete",
    failure="failure failed error crashed",
    timeout="timeout",
    skipped="skipped",
)
_REFLECTION_KINDS: Final = frozenset(
    ("error_analysis", "strategy_change", "success_pattern", "constraint_discovery", "process_improvement")
)
_EFFECTIVENESS: Final = _by_word(str, helpful="helpful", neutral="neutral", unhelpful="unhelpful harmful")
_TRUE: Final = frozenset({"true", "yes"})
_FALSE: Final = frozenset({"false", "no"})
_FRACTION: Final = re.compile(r"(\d{1,9})\s*/\s*(\d{1,9})")
_PERCENT_FROM: Final = 10  # Minimum percentage with decimals; lower values above 1 are not accepted as rates.


def first(record: Mapping[str, Any], names: Iterable[str]) -> Any:
    """Return the first value of `names` that is not null; None if there is none."""
    for name in names:
        value = record.get(name)
        if value is not None:
            return value
    return None


def text(value: Any) -> str:
    """Return a string unchanged, a number as its digits, and "" for any other value."""
    if isinstance(value, str):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""


def texts(value: Any) -> tuple[str, ...]:
    """Return the texts of a list, or a single text, without empty texts."""
    if type(value) is str:  # nearly all
        return (found,) if (found := value.strip()) else ()
    if value is None:
        return ()
    values = value if isinstance(value, list | tuple) else [value]
    return tuple([found for item in values if (found := text(item).strip())])


def lines(value: Any) -> tuple[str, ...]:
    """Split learnings into lines, without headings such as `### Iteration 2`."""
    found = [line for item in texts(value) for part in item.splitlines() if (line := part.strip())]
    return tuple([line for line in found if not line.startswith("### ")])


def number(value: Any) -> float | None:
    """Return a finite number, which may be written as text."""
    if type(value) is float:
        return value if math.isfinite(value) else None
    if isinstance(value, str):
        if not 0 < len(value) <= 40:
            return None
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def duration(value: Any) -> float | None:
    """Return a number from 0 to `MAX_COUNT`, unit unchanged; None for anything else."""
    found = number(value)
    return found if found is not None and 0 <= found <= MAX_COUNT else None


def count(value: Any) -> int | None:
    """Return a whole number from 0 to 10^15; `3.0` is accepted."""
    if type(value) is int:  # the common case, several times faster than by way of floats
        return value if 0 <= value <= MAX_COUNT else None
    found = number(value)
    if found is None or not 0 <= found <= MAX_COUNT or found != int(found):
        return None
    return int(found)


def rate(value: Any) -> float | None:
    """Return 0.75 for 0.75, 75, "75%" or "3/4" (docs/file-formats.md#rates).

    1 means 100 %. A plain number above 1 is a percentage only if it is whole or at least 10, so 1.4 is not a rate.
    """
    if isinstance(value, str):
        value = value.strip()
        if parts := _FRACTION.fullmatch(value):
            part, whole = int(parts[1]), int(parts[2])
            return part / whole if 0 < whole >= part else None
        if value.endswith("%"):
            percent = number(value[:-1])
            return percent / 100 if percent is not None and 0 <= percent <= 100 else None
    found = number(value)
    if found is None or not 0 <= found <= 100:
        return None
    if found <= 1:
        return found
    return found / 100 if found >= _PERCENT_FROM or found.is_integer() else None


def flag(value: Any) -> bool | None:
    """Return True or False, which may be written as text; None for any other value."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        word = value.strip().casefold()
        return True if word in _TRUE else False if word in _FALSE else None
    return None


def word(value: Any) -> str:
    """Prepare a word for comparison: case folded, with `_` for `-` and space."""
    if type(value) is str and value.isascii() and value.islower() and value.isidentifier():
        return value  # already in that form
    return text(value).strip().casefold().replace("-", "_").replace(" ", "_")


def loop_status(value: Any) -> LoopStatus:
    """Return the status of a loop; `unknown` for an unknown word."""
    return _LOOP_STATUSES.get(word(value), LoopStatus.UNKNOWN)


def task_status(value: Any) -> TaskStatus:
    """Return the status of a task; `unknown` for an unknown word."""
    return _TASK_STATUSES.get(word(value), TaskStatus.UNKNOWN)


def outcome(value: Any) -> Outcome:
    """Return an outcome (of an iteration, attempt, task or use); may be `unknown`."""
    return _OUTCOMES.get(word(value), Outcome.UNKNOWN)


def reflection_kind(value: Any) -> str:
    """Return one of the five kinds of reflection, or ""."""
    return kind if (kind := word(value)) in _REFLECTION_KINDS else ""


def effectiveness(value: Any) -> str:
    """Return helpful, neutral, unhelpful or ""; harmful is read as unhelpful."""
    return _EFFECTIVENESS.get(word(value), "")


_S = TypeVar("_S", bound=Struct)
_EMPTY: Final = (None, "", (), Outcome.UNKNOWN)
_QUOTED: Final = 60  # Maximum length of an invalid value in a message, in characters.
_MAX_FINDINGS: Final = 20  # Maximum findings of one document.


class Fields:
    """Tolerant reader of the fields of one JSON object.

    Each method takes all known names of a field and returns the first valid value. Invalid values before it are added
    to `findings`, which nested objects share. `pointer` is the JSON pointer of the object, "" for the whole file.
    """

    __slots__ = ("file", "findings", "mapping", "pointer")

    def __init__(self, file: str, mapping: dict[Any, Any], findings: list[Finding], pointer: str = "") -> None:
        self.file = file
        self.mapping = mapping
        self.findings = findings
        self.pointer = pointer

    def text(self, *names: str) -> str:
        """Return a string, or a number as its digits; "" if there is neither."""
        for name in names:
            value = self.mapping.get(name)
            if type(value) is str:
                return value
            if value is not None:
                found = text(value)
                if found:
                    return found
                self._report_type(name, "a string", value)
        return ""

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return the strings of a list, or a single string, without empty strings."""
        return self._many(names, texts)

    def lines(self, *names: str) -> tuple[str, ...]:
        """Return learnings (a string, a list or Markdown) as lines without headings."""
        return self._many(names, lines)

    def count(self, *names: str) -> int | None:
        """Return a whole number of at least 0, or None."""
        return self._one(names, count, "a whole number of at least 0")

    def number(self, *names: str) -> float | None:
        """Return a finite number, or None."""
        return self._one(names, number, "a finite number")

    def duration(self, *names: str) -> float | None:
        """Return a finite number of at least 0, or None."""
        return self._one(names, duration, "a number of at least 0")

    def rate(self, *names: str) -> float | None:
        """Return a rate as 0..1, or None (docs/file-formats.md#rates)."""
        return self._one(names, rate, "a rate from 0 to 1, or a percentage")

    def flag(self, *names: str) -> bool | None:
        """Return True or False, or None if no value is valid."""
        return self._one(names, flag, "true or false")

    def time(self, *names: str) -> datetime | None:
        """Return a time in UTC, or None."""
        return self._one(names, parse_time, "an ISO-8601 time or epoch milliseconds", "bad-time")

    def inside(self, name: str) -> Fields | None:
        """Return a reader of the object at `name`, or None."""
        value = self.mapping.get(name)
        if value is None:
            return None
        if isinstance(value, dict):
            return Fields(self.file, value, self.findings, self.place(name))
        self._report_type(name, "an object", value)
        return None

    def convert(self, kind: type[_S], limit: int | None = None, /, **known: Any) -> _S:
        """Create a struct; fields that are not in `known` are read by their names.

        The type of a field selects the method: `count` for an int, `number` for a float. Texts are truncated to
        `limit` characters. Fields of unsupported types keep their defaults.
        """
        for name, read in _readers(kind):
            if name not in known:
                known[name] = read(self, name, limit)
        return kind(**known)

    def objects(self, name: str) -> Iterator[tuple[str, Fields]]:
        """Iterate the objects at `name` with key or index; other values are findings."""
        above, is_list = self.place(name), isinstance(self.mapping.get(name), list)
        for key, item in self.items(name):
            place = f"{above}/{key if is_list else escape_key(key)}"
            if isinstance(item, dict):
                yield key, Fields(self.file, item, self.findings, place)
            else:
                self.add("wrong-type", f"expected an object, found {quote_value(item)}", place)

    def items(self, name: str) -> Iterator[tuple[str, Any]]:
        """Iterate the items of the list or object at `name` with key or index."""
        value = self.mapping.get(name)
        if isinstance(value, list):
            for index, item in enumerate(value):
                yield str(index), item
        elif isinstance(value, dict):
            for key, item in value.items():
                yield str(key), item
        elif value is not None:
            self._report_type(name, "a list", value)

    def place(self, name: str) -> str:
        """Return the JSON pointer of the field `name`."""
        return f"{self.pointer}/{escape_key(name)}"

    def add(self, code: str, message: str, place: str, severity: Severity = Severity.WARNING) -> None:
        """Add a finding at `place`, a JSON pointer into the file."""
        if len(self.findings) < _MAX_FINDINGS:
            self.findings.append(Finding(self.file, place, severity, code, message))

    def _one(
        self,
        names: tuple[str, ...],
        read: Callable[[Any], _T | None],
        expected: str,
        code: str = "wrong-type",
    ) -> _T | None:
        for name in names:
            value = self.mapping.get(name)
            if value is not None:
                found = read(value)
                if found is not None:
                    return found
                self._report_type(name, expected, value, code)
        return None

    def _many(self, names: tuple[str, ...], read: Callable[[Any], tuple[str, ...]]) -> tuple[str, ...]:
        for name in names:
            value = self.mapping.get(name)
            if not value:
                continue
            if found := read(value):
                return found
            if not isinstance(value, str | list):
                self._report_type(name, "a string or a list of strings", value)
        return ()

    def _report_type(self, name: str, expected: str, value: Any, code: str = "wrong-type") -> None:
        self.add(code, f"expected {expected}, found {quote_value(value)}", self.place(name))


_READERS: Final[Mapping[Any, Callable[[Fields, str, int | None], Any]]] = {
    str: lambda fields, name, limit: fields.text(name)[:limit],
    tuple[str, ...]: lambda fields, name, limit: tuple(text[:limit] for text in fields.texts(name)),
    int | None: lambda fields, name, _: fields.count(name),
    float | None: lambda fields, name, _: fields.number(name),
    bool | None: lambda fields, name, _: fields.flag(name),
    datetime | None: lambda fields, name, _: fields.time(name),
}


@cache
def _readers(kind: type[Struct]) -> tuple[tuple[str, Callable[[Fields, str, int | None], Any]], ...]:
    return tuple((name, _READERS[type]) for name, type in get_type_hints(kind).items() if type in _READERS)


def document(file: str, value: Any, findings: list[Finding]) -> Fields | None:
    """Return a reader of a document; None, with a finding, if it is not an object."""
    if isinstance(value, dict):
        return Fields(file, value, findings)
    message = f"expected an object, found {quote_value(value)}"
    findings.append(Finding(file, "", Severity.ERROR, "wrong-type", message))
    return None


def fill_gaps(first: _S, *others: _S) -> _S:
    """Fill the empty fields of `first` with the first value in the other structs."""
    found: dict[str, Any] = {}
    for other in others:
        for name, value in asdict(other).items():
            if value not in _EMPTY and getattr(first, name) in _EMPTY:
                found.setdefault(name, value)
    return replace(first, **found) if found else first


def quote_value(value: Any) -> str:
    """Format a value for a message: short, on one line, safe to print."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    return f"'{visible_line(str(value), _QUOTED)}'"


def escape_key(name: str) -> str:
    """Escape a key for use in a JSON pointer (RFC 6901)."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name
