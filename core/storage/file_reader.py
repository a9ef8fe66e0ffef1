"""Bytes of a file that anybody may have written, to a plain value: with limits, and never an exception.

A problem is *torn* when the bytes are no document at all (empty, cut short, unreadable): a writer is probably
at work, so the last good value is kept and the file read again (formats section 4). Everything else that is
wrong is a problem beside a value that can be used.
"""

from __future__ import annotations

import errno
import itertools
import json
import math
import os
import re
import stat
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.storage.encodings import as_utf8

MAX_BYTES: Final = 8 << 20
"""Largest file that is read, pattern files apart."""
MAX_PATTERN_BYTES: Final = 512 << 20
"""Largest pattern file that is read: 100,000 patterns of 1.8 kB are 180 MB."""
MAX_DEPTH: Final = 64
"""Deepest nesting of a document; the deepest real file has 9."""
_MAX_DIGITS: Final = 18
"""Longest integer, in digits, that is turned into a number; no count, time or pid has more."""

_END_OF_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC).timestamp()
BOM: Final = b"\xef\xbb\xbf"
"""What may stand before a document."""
_NOT_STRUCTURE: Final = bytes(code for code in range(256) if code not in b'[]{}"')
_STRINGS: Final = re.compile(rb'"[^"]*"')
_STEP: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DECODER: Final = msgspec.json.Decoder()


class Stamp(Struct, frozen=True, array_like=True, gc=False):
    """What tells one version of a file from another; inode or time alone do not (times in ns)."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        """The stamp of a stat result."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)

    @property
    def modified_at(self) -> datetime:
        """The mtime in UTC; anybody can set it to a year that `datetime` does not have."""
        return datetime.fromtimestamp(min(max(self.mtime_ns / 1e9, 0), _END_OF_TIME), UTC)


class Problem(Struct, frozen=True, gc=False):
    """What is wrong with one document.

    Attributes:
        code: Stable kebab-case word, as in `Finding`.
        message: For a person.
        place: JSON pointer, `line N` or `line N, column M`; "" for the whole document.
        severity: `error` where nothing could be used.
        torn: The bytes are no document; the last good value stays.
    """

    code: str
    message: str
    place: str = ""
    severity: Severity = Severity.ERROR
    torn: bool = False

    def finding(self, file: str) -> Finding:
        """The finding that this problem is in `file` (project-relative)."""
        return Finding(file, self.place, self.severity, self.code, self.message)


class Decoded(Struct, frozen=True, gc=False):
    """A decoded document: `value` can be used unless `failed`; `problems` says what is wrong in any case."""

    value: Any = None
    problems: tuple[Problem, ...] = ()
    failed: bool = False

    @property
    def torn(self) -> bool:
        """Whether the bytes are no document at all, so that the last good value should stay."""
        return self.failed and any(problem.torn for problem in self.problems)


class RawFile(Struct, frozen=True, gc=False):
    """The bytes of a file and the stamp it had just before they were read."""

    data: bytes
    stamp: Stamp


def read_file(path: Path | str, root: Path, limit: int = MAX_BYTES) -> RawFile | Problem | None:
    """The bytes of a regular file of at most `limit` bytes; None if there is none.

    A symbolic link is followed only to a place inside `root`; FIFOs, devices and folders are refused without
    blocking on them.
    """
    descriptor = open_file(path, root)
    if not isinstance(descriptor, int):
        return descriptor
    try:
        return _read(descriptor, limit)
    except OSError as error:
        return _unreadable(error)
    finally:
        os.close(descriptor)


def open_file(path: Path | str, root: Path) -> int | Problem | None:
    """A descriptor to read a regular file with, which the caller closes; None if there is none. Links as above."""
    try:
        return _opened(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            return _unreadable(error)
    try:
        target = Path(path).resolve(strict=True)
        if not target.is_relative_to(root.resolve()):
            return Problem("link-outside", f"is a link that leads out of {root.name}; not followed")
        return _opened(target)
    except (FileNotFoundError, RuntimeError):  # a dangling link, a circle of links
        return None
    except OSError as error:
        return _unreadable(error)


def _opened(path: Path | str) -> int | Problem:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return Problem("not-a-file", "is no regular file; not read")


def _unreadable(error: OSError) -> Problem:
    return Problem("unreadable", f"cannot be read: {error.strerror or type(error).__name__}", torn=True)


def _read(descriptor: int, limit: int) -> RawFile | Problem:
    status = os.fstat(descriptor)
    if status.st_size > limit:
        return Problem("too-large", f"has {status.st_size:,} bytes; at most {limit:,} are read")
    chunks = []
    left = limit + 1
    wanted = min(status.st_size + 1, 1 << 24)  # one byte more than there is, so that one read is the last one as well
    while left > 0 and (chunk := os.read(descriptor, min(left, wanted))):
        chunks.append(chunk)
        left -= len(chunk)
        if len(chunk) < wanted and limit + 1 - left >= status.st_size:
            break
    if left <= 0:
        return Problem("too-large", f"grew over {limit:,} bytes while it was read")
    return RawFile(chunks[0] if len(chunks) == 1 else b"".join(chunks), Stamp.of(status))


def is_nested_deeper(data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Whether a JSON document is nested deeper than so many levels, found without recursion.

    Exact for valid JSON; looks no further than to the first place that is too deep.
    """
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # Two quotes side by side open and close nothing: without them, inside and outside stay as they were.
    structure = _STRINGS.sub(b"", data.translate(None, _NOT_STRUCTURE).replace(b'""', b""))
    return any(depth > levels for depth in itertools.accumulate(map(_STEP.__getitem__, structure)))


def decode_json(data: bytes) -> Decoded:
    """One JSON document; NaN, Infinity and numbers out of range become null, lone surrogates U+FFFD."""
    data = data.removeprefix(BOM)
    refused = _refused(data)
    if refused is not None:
        return Decoded(problems=(refused,), failed=True)
    try:
        value = msgspec.json.decode(data)
        encoded = msgspec.json.encode(value)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError):
        return _decode_loosely(data)
    if _quotes(encoded) < _quotes(data):
        return _decode_loosely(data)  # a key occurs twice; the slow way names it
    return Decoded(value)


def _refused(data: bytes) -> Problem | None:
    """What keeps a document from being given to a decoder."""
    if not data.strip(b" \t\r\n\0"):
        return Problem("empty", "is empty", torn=True)
    if is_nested_deeper(data):
        return Problem("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read")
    return None


def duplicate_key_message(key: str) -> str:
    """What is wrong where a key occurs twice."""
    return f"key {visible_line(key, 60)!r} occurs twice in one object; the last one counts"


def _quotes(data: bytes) -> int:
    """How many string delimiters there are."""
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    return data.count(b'"')


def _decode_loosely(data: bytes) -> Decoded:
    """What Python's tolerant decoder can still make of a document, with everything wrong named."""
    problems: dict[str, Problem] = {}

    def note(code: str, message: str) -> None:
        problems.setdefault(code, Problem(code, message, severity=Severity.WARNING))

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(items)
        if len(record) < len(items):
            twice = Counter(key for key, _ in items).most_common(1)[0][0]
            note("duplicate-key", duplicate_key_message(twice))
        return record

    def integer(digits: str) -> int | None:
        if len(digits) <= _MAX_DIGITS:
            return int(digits)
        note("bad-number", f"a number of {len(digits):,} digits was read as null")
        return None

    def fraction(digits: str) -> float | None:
        number = float(digits)
        if math.isfinite(number):
            return number
        note("bad-number", f"number {digits[:40]} is out of range and was read as null")
        return None

    def constant(name: str) -> None:
        note("bad-number", f"{name} is no JSON number and was read as null")

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        note("bad-encoding", f"is not UTF-8 (byte {error.start}); wrong bytes were replaced")
    decoder = json.JSONDecoder(
        object_pairs_hook=pairs,
        parse_int=integer,
        parse_float=fraction,
        parse_constant=constant,
        strict=False,
    )
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        problem = Problem("bad-json", f"is not JSON: {error.msg}", place, torn=True)
        return Decoded(problems=(problem,), failed=True)
    except (RecursionError, ValueError) as error:
        message = f"is not JSON: {visible_line(str(error), 80)}"
        return Decoded(problems=(Problem("bad-json", message, torn=True),), failed=True)
    if "\\u" in text and _SURROGATE.search(spelled := json.dumps(value, ensure_ascii=False)):
        value = json.loads(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", spelled))
        note("bad-encoding", "holds half a surrogate pair; replaced")
    if not problems:
        note("bad-json", "holds control characters that JSON forbids; read all the same")
    return Decoded(value, tuple(problems.values()))


class Line(Struct, frozen=True, gc=False):
    """One line of a JSONL file: its number from 1, and what it holds."""

    number: int
    value: Any


def decode_jsonl(data: bytes) -> tuple[list[Line], tuple[Problem, ...]]:
    """Every complete line that is JSON, and what is wrong with the others.

    A last line without a line feed is still being written: it is held back, not wrong.
    """
    lines: list[Line] = []
    problems: list[Problem] = []
    complete = data.removeprefix(BOM)[: data.rfind(b"\n") + 1]
    if (usual := _usual_lines(complete)) is not None:
        return [Line(number, value) for number, value in enumerate(usual, start=1)], ()
    for number, line in enumerate(complete.split(b"\n"), start=1):
        if not line.strip():
            continue
        decoded = decode_json(line)
        if not decoded.failed:
            lines.append(Line(number, decoded.value))
        problems += (
            Problem(problem.code, problem.message, f"line {number}", problem.severity) for problem in decoded.problems
        )
    return lines, tuple(problems)


def _usual_lines(complete: bytes) -> list[Any] | None:
    """The values of lines each of which is one object with nothing wrong in it, decoded in one go; None where a line
    needs a look of its own.
    """
    lines = complete.split(b"\n")[:-1]
    usual = len(complete) <= MAX_BYTES and all(
        line[:1] == b"{" and line[-1:] == b"}" and line.count(b"[") + line.count(b"{") <= MAX_DEPTH for line in lines
    )
    if not usual:
        return None
    try:
        values = _DECODER.decode_lines(complete)
        encoded = msgspec.json.encode(values)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError):
        return None
    return values if len(values) == len(lines) and _quotes(encoded) == _quotes(complete) else None


def decode(file: str, data: bytes, *, every: bool = False) -> Decoded:
    """What a file holds by its name: for `.jsonl` its lines, see `decode_jsonl`; for `.yaml` and `.yml` one document
    of YAML, with `every` a list of several; else one of JSON.
    """
    data, encoding = as_utf8(data)
    decoded = _decode(file, data, every)
    if not encoding or decoded.failed:
        return decoded
    return Decoded(decoded.value, (other_encoding(encoding), *decoded.problems))


def other_encoding(name: str) -> Problem:
    """The problem of a file that was read although it is not UTF-8."""
    return Problem("bad-encoding", f"is {name}, not UTF-8; read all the same", severity=Severity.WARNING)


def _decode(file: str, data: bytes, every: bool) -> Decoded:
    if file.endswith(".jsonl"):
        return Decoded(*decode_jsonl(data))
    if not file.endswith((".yaml", ".yml")):
        return decode_json(data)
    # Most commands read no YAML.
    from core.storage.yaml_reader import decode_yaml

    return decode_yaml(data, every=every)
