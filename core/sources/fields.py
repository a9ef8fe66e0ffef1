"""Read JSON objects by field; wrong values become findings and read as missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

from msgspec import Struct
from msgspec.structs import asdict, replace

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.times import parse_time
from core.sources import normalize

_T = TypeVar("_T")
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
                found = normalize.text(value)
                if found:
                    return found
                self._report_type(name, "a string", value)
        return ""

    def texts(self, *names: str) -> tuple[str, ...]:
        """Return the strings of a list, or a single string, without empty strings."""
        return self._many(names, normalize.texts)

    def lines(self, *names: str) -> tuple[str, ...]:
        """Return learnings (a string, a list or Markdown) as lines without headings."""
        return self._many(names, normalize.lines)

    def count(self, *names: str) -> int | None:
        """Return a whole number of at least 0, or None."""
        return self._one(names, normalize.count, "a whole number of at least 0")

    def number(self, *names: str) -> float | None:
        """Return a finite number, or None."""
        return self._one(names, normalize.number, "a finite number")

    def duration(self, *names: str) -> float | None:
        """Return a finite number of at least 0, or None."""
        return self._one(names, normalize.duration, "a number of at least 0")

    def rate(self, *names: str) -> float | None:
        """Return a rate as 0..1, or None (docs/file-formats.md#rates)."""
        return self._one(names, normalize.rate, "a rate from 0 to 1, or a percentage")

    def flag(self, *names: str) -> bool | None:
        """Return True or False, or None if no value is valid."""
        return self._one(names, normalize.flag, "true or false")

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
        self, names: tuple[str, ...], read: Callable[[Any], _T | None], expected: str, code: str = "wrong-type"
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
