"""Read the action log of an attempt on demand (docs/file-formats.md#tasks)."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, overload

import msgspec
from msgspec.structs import replace

from core.files.decoded import Problem
from core.files.file_reader import MAX_BYTES, MAX_PATTERN_BYTES, decode_json, open_file
from core.records.episodes import Action
from core.records.findings import Finding, Severity
from core.sources import normalize
from core.sources.fields import Fields

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

MAX_TEXT: Final = 1 << 16  # Maximum length of a text in memory, in characters; the file is never changed.
MAX_PARAMS: Final = 100  # Maximum parameters read from one action.
MAX_ACTIONS: Final = 1_000_000  # Maximum actions read from one log; the rest is ignored.
MAX_FINDINGS: Final = 200  # Maximum findings on the lines of one log.
_CHUNK: Final = 1 << 20  # Size of one read while finding lines, in bytes.
LEADING_BYTES: Final = b" \t\r\xef\xbb\xbf"
"""Bytes before the first character of a line: white space and a byte order mark."""


class ActionSummary(msgspec.Struct, gc=False):
    """The fields of an action that lists and counts use."""

    timestamp: str | int | float | None = None
    success: bool | None = None
    error: Any = None

    @property
    def has_failed(self) -> bool:
        return self.success is False or (self.success is None and bool(self.error))


_decoder: Final = msgspec.json.Decoder(ActionSummary)


def summarize_action(line: bytes) -> ActionSummary | None:
    """Decode only the fields that lists need; None if the line is not an object."""
    try:
        return _decoder.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
        if not isinstance(value, dict):
            return None
        return ActionSummary(value.get("timestamp"), normalize.flag(value.get("success")), value.get("error"))


def invalid_action_finding(file: str, line: int, count: int) -> Finding:
    """Return one finding for `count` invalid lines, of which `line` is the first."""
    more = f", and {count - 1:,} more lines like it" if count > 1 else ""
    message = f"is not an action (a JSON object){more}; skipped"
    return Finding(file, f"line {line}", Severity.WARNING, "wrong-type", message)


def read_action(number: int, fields: Fields) -> Action:
    """Read the action of one decoded line; long texts are truncated."""
    params = fields.mapping.get("params")
    if params is not None and not isinstance(params, dict):
        params = {"params": params}
    error = fields.mapping.get("error")
    return Action(
        number=number,
        at=fields.time("timestamp", "at"),
        iteration=fields.count("iteration"),
        type=to_text(fields.mapping.get("type")),
        tool=to_text(fields.mapping.get("tool")),
        params=tuple(
            (str(name)[:MAX_TEXT], to_text(value)) for name, value in list((params or {}).items())[:MAX_PARAMS]
        ),
        success=fields.flag("success"),
        output=to_text(fields.mapping.get("output")),
        error=to_text(error) if error else "",
        reasoning=to_text(fields.mapping.get("reasoning")),
        expected=to_text(fields.mapping.get("expected_outcome")),
    )


def to_text(value: Any, limit: int = MAX_TEXT) -> str:
    """Return a text, None as "" and any other value as JSON; truncated."""
    if isinstance(value, str):
        return value[:limit]
    return "" if value is None else msgspec.json.encode(value).decode()[:limit]


class Actions(Sequence[Action]):
    """The actions of one log, in the order of the file. Bad files never raise.

    Only the offsets of lines are held in memory. Each line that starts with `{` counts as an action. If it cannot be
    decoded, it gives a finding and an action with only a number. An incomplete last line is ignored.
    """

    def __init__(self, paths: ProjectPaths, file: str) -> None:
        """Find the lines of the project-relative `file`; a missing file has none."""
        self._paths: Final = paths
        self.file: Final = file
        self._lines = _Lines()
        self._problems: dict[str, Finding] = {}
        self._errors: Sequence[int] | None = None
        with self._opened() as descriptor:
            if descriptor is not None:
                self._lines.read(descriptor)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings for the file and for the lines decoded so far."""
        return *self._lines.findings(self.file), *self._problems.values()

    @property
    def errors(self) -> Sequence[int]:
        """Ascending positions (from 0) of failed actions; decodes every line once."""
        if self._errors is None:
            found, start = array("Q"), 0
            starts, ends = self._lines.starts, self._lines.ends
            while start < len(self):
                end = max(bisect_left(ends, starts[start] + _CHUNK), start + 1)
                summaries = enumerate(self._summarize(start, end), start)
                found.extend(place for place, one in summaries if one is not None and one.has_failed)
                start = end
            self._errors = found
        return self._errors

    def _summarize(self, start: int, end: int) -> Sequence[ActionSummary | None]:
        """Decode what lists need of some actions, at once if all lines are valid."""
        first, last = self._lines.starts[start], self._lines.ends[end - 1]
        if last - first <= MAX_BYTES:
            with self._opened() as descriptor, suppress(msgspec.MsgspecError, ValueError, RecursionError):
                lines = os.pread(descriptor, last - first, first) if descriptor is not None else b""
                if len(summaries := _decoder.decode_lines(lines)) == end - start:
                    return summaries
        return [summarize_action(line) for line in self._raw(range(start, end))]

    def find_newest(self, most: int, size: int) -> int:
        """Return the position of the first of the newest actions: at most `most`, with at most `size` bytes."""
        ends = self._lines.ends
        by_size = bisect_left(self._lines.starts, ends[-1] - size) if ends else 0
        return max(len(self) - most, by_size, 0)

    def __len__(self) -> int:
        return len(self._lines.starts)

    @overload
    def __getitem__(self, place: int) -> Action: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Action, ...]: ...
    def __getitem__(self, place: int | slice) -> Action | tuple[Action, ...]:
        wanted = range(len(self))[place]
        if isinstance(wanted, int):
            return next(self._decoded(range(wanted, wanted + 1)))
        return tuple(self._decoded(wanted))

    def __iter__(self) -> Iterator[Action]:
        return self._decoded(range(len(self)))

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        opened = open_file(self._paths.project / self.file, self._paths.aiwg)
        if isinstance(opened, Problem):
            self._note("", opened)
        if not isinstance(opened, int):
            yield None
            return
        try:
            yield opened
        finally:
            os.close(opened)

    def _raw(self, places: Iterable[int]) -> Iterator[bytes]:
        """Read the bytes of some lines; b"" for a line that is too long or unreadable."""
        starts, ends = self._lines.starts, self._lines.ends
        with self._opened() as descriptor:
            for place in places:
                length = ends[place] - starts[place]
                if descriptor is None or length > MAX_BYTES:
                    yield b""
                else:
                    yield os.pread(descriptor, length, starts[place])

    def _decoded(self, places: Sequence[int]) -> Iterator[Action]:
        return map(self._action, places, self._raw(places))

    def _action(self, place: int, line: bytes) -> Action:
        pointer = f"line {self._lines.numbers[place]}"
        if not line:
            self._note(pointer, Problem("too-large", f"is missing or longer than {MAX_BYTES:,} bytes; skipped"))
            return Action(number=place + 1)
        decoded = decode_json(line)
        for problem in decoded.problems:
            self._note(pointer, problem)
        if not isinstance(decoded.value, dict):
            return Action(number=place + 1)
        wrong: list[Finding] = []
        action = read_action(place + 1, Fields(self.file, decoded.value, wrong, pointer))
        for finding in wrong:
            self._problems.setdefault(finding.pointer, finding)
        return action

    def _note(self, pointer: str, problem: Problem) -> None:
        if len(self._problems) < MAX_FINDINGS:
            self._problems.setdefault(pointer, replace(problem, place=pointer).finding(self.file))


class _Lines:
    """Offsets (in bytes) and numbers (from 1) of the lines that start with `{`."""

    def __init__(self) -> None:
        self.starts, self.ends, self.numbers = array("Q"), array("Q"), array("Q")
        self._end = self._read = 0  # bytes and lines that were scanned
        self._skipped = self._first_skipped = 0
        self._cut = False

    def read(self, descriptor: int) -> None:
        """Find the lines of the file open at `descriptor`."""
        size = os.fstat(descriptor).st_size
        end = min(size, MAX_PATTERN_BYTES)
        position = 0
        start = b""  # first character of the current line
        while position < end and len(self.starts) < MAX_ACTIONS:
            chunk = os.pread(descriptor, min(_CHUNK, end - position), position)
            if not chunk:
                break
            *pieces, rest = chunk.split(b"\n")
            for piece in pieces:
                position += len(piece) + 1
                self._add(start or piece.lstrip(LEADING_BYTES)[:1], position)
                start = b""
            start = start or rest.lstrip(LEADING_BYTES)[:1]
            position += len(rest)
        self._cut = size > MAX_PATTERN_BYTES or len(self.starts) >= MAX_ACTIONS

    def _add(self, start: bytes, end: int) -> None:
        self._read += 1
        if start == b"{":
            self.starts.append(self._end)
            self.ends.append(end - 1)
            self.numbers.append(self._read)
        elif start:
            self._skipped += 1
            self._first_skipped = self._first_skipped or self._read
        self._end = end

    def findings(self, file: str) -> Iterator[Finding]:
        """Findings for a log that is too long, and for lines that are not actions."""
        if self._cut:
            message = f"is too long; lines after line {self._read:,} are ignored"
            yield Finding(file, "", Severity.WARNING, "too-large", message)
        if self._skipped:
            yield invalid_action_finding(file, self._first_skipped, self._skipped)
