"""Read untrusted files with limits of size and depth; decode JSON, JSONL, YAML.

A document is *torn* if its bytes cannot be decoded (empty, cut short, unreadable). A writer is probably busy, so the
caller keeps the last good value and reads the file again (docs/reliability.md#torn-files). All other problems come with
a usable value.
"""

from __future__ import annotations

import codecs
import errno
import itertools
import json
import math
import os
import stat
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from core.base.paths import is_in_trusted_path, is_own
from core.base.regexes import lazy_regex
from core.base.text import visible_line
from core.records.findings import Finding, Severity
from core.records.times import time_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    import yaml

MAX_DEPTH: Final = 64  # maximum nesting of a document; real files have at most 9 levels
BOM: Final = b"\xef\xbb\xbf"


class Problem(Struct, frozen=True, gc=False):
    """Defect of one document."""

    code: str  # stable kebab-case word, as in `Finding`
    message: str  # for people
    place: str = ""  # JSON pointer, `line N` or `line N, column M`; "" for the whole document
    severity: Severity = Severity.ERROR  # `error` if nothing could be used
    torn: bool = False  # whether the bytes are not a document, so that the last good value stays

    def finding(self, file: str) -> Finding:
        """Return this problem as a finding in `file` (project-relative)."""
        return Finding(file, self.place, self.severity, self.code, self.message)


TOO_DEEP: Final = Problem("too-deep", f"is nested deeper than {MAX_DEPTH} levels; not read")


class Decoded(Struct, frozen=True, gc=False):
    """Decoded document; `value` is usable unless `failed`."""

    value: Any = None
    problems: tuple[Problem, ...] = ()
    failed: bool = False

    @property
    def torn(self) -> bool:
        """Whether the document is torn, so that the last good value should stay."""
        return self.failed and any(problem.torn for problem in self.problems)


class Line(Struct, frozen=True, gc=False):
    """Line of a JSONL file: its number, counted from 1, and its value."""

    number: int
    value: Any


def duplicate_key_message(key: str) -> str:
    """Return the message for a key that occurs twice in one object."""
    return f"key {visible_line(key, 60)!r} occurs twice in one object; the last one counts"


def encoding_problem(name: str) -> Problem:
    """Return the problem that a file is not in UTF-8, but was read."""
    return Problem("bad-encoding", f"is {name}, not UTF-8; it was read anyway", severity=Severity.WARNING)


UTF8: Final = "utf-8"
_MARKS: Final = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_BY_ZEROS: Final[dict[tuple[bool, ...], str]] = {
    (True, False, False, False): "utf-32-le",
    (False, False, False, True): "utf-32-be",
    (True, False, True, False): "utf-16-le",
    (False, True, False, True): "utf-16-be",
}  # by which of the first four bytes are not zero
_MULTIBYTE: Final = lazy_regex(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH: Final = lazy_regex(rb"(?<=[A-Za-z0-9 ])[\x80-\xff]{1,4}(?=[A-Za-z0-9 .,;:!?\"'])|(?<=\")[\x80-\xff](?=[a-z])")
_ANY_HIGH: Final = lazy_regex(rb"[\x80-\xff]+")
_PUNCTUATION: Final = frozenset("‘’“”–—…€§°«»·±²³µ¿¡£¥©®™•")
MAX_BYTES: Final = 8 << 20  # maximum size of a file with one record or a few
_MAX_SMALL: Final = 4096  # bytes of a small file of Git
MAX_PATTERN_BYTES: Final = 512 << 20  # maximum size of a file with many records: 100,000 patterns of 1.8 kB take 180 MB
UNREADABLE: Final = "unreadable"  # code of the problem with a file that the system does not let read
_MAX_INTEGER: Final = (1 << 63) - 1


def stamp_row(status: os.stat_result) -> tuple[int, int, int, int]:
    """Return inode, size, mtime and ctime (ns), limited for databases to year 2262."""
    row = status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    if max(row) <= _MAX_INTEGER and min(row) >= -_MAX_INTEGER:
        return row
    inode, size, *times = (min(max(number, -_MAX_INTEGER), _MAX_INTEGER) for number in row)
    return inode, size, times[0], times[1]


class Stamp(Struct, frozen=True, array_like=True, gc=False):
    """Version of a file, only identified by all fields; times in ns, see `stamp_row`."""

    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> Stamp:
        return cls(*stamp_row(status))

    @property
    def modified_at(self) -> datetime:
        """Modification time in UTC; see `time_at`."""
        return time_at(self.mtime_ns / 1e9)


class RawFile(Struct, frozen=True, gc=False):
    """Bytes of a file, and its stamp from just before they were read."""

    data: bytes
    stamp: Stamp


def read_file(path: Path | str, root: Path, limit: int = MAX_BYTES, start: int = 0) -> RawFile | Problem | None:
    """Read a regular file of at most `limit` bytes from `start`; None if missing.

    Follows a symbolic link only inside `root`. Refuses FIFOs, devices and folders without blocking.
    """
    opened = open_file(path, root)
    if not isinstance(opened, int):
        return opened
    try:
        return _read(opened, limit, start)
    except OSError as error:
        return _unreadable(error)
    finally:
        os.close(opened)


def read_first_line(file: Path) -> str:
    """Return a small Git file's first line; "" if unreadable or with a NUL."""
    raw = read_file(file, file.parent, _MAX_SMALL)
    line = raw.data.decode("utf-8", "surrogateescape").partition("\n")[0].strip() if isinstance(raw, RawFile) else ""
    return "" if "\0" in line else line  # no path or name has one


def open_file(path: Path | str, root: Path) -> int | Problem | None:
    """Open a regular file like `read_file`; None if it does not exist.

    A file in `.aiwg` that belongs to another user of the machine is a problem (docs/safety.md#owners).
    """
    opened = _open_any(path, root)
    if not isinstance(opened, int) or root.name != ".aiwg" or is_own(os.fstat(opened)) or is_in_trusted_path(root):
        return opened
    os.close(opened)
    return Problem("other-owner", "belongs to another user of this machine; not read")


def _open_any(path: Path | str, root: Path) -> int | Problem | None:
    """Open a regular file of any owner like `open_file`."""
    try:
        return _open(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.EMLINK):
            return _unreadable(error)
    try:
        target = Path(path).resolve(strict=True)
        if not target.is_relative_to(root.resolve()):
            return Problem("link-outside", f"is a link that leads out of {root.name}; not followed")
        return _open(target)
    except (FileNotFoundError, RuntimeError):  # a dangling link, a circle of links
        return None
    except OSError as error:
        return _unreadable(error)


def decode(file: str, data: bytes, *, every: bool = False) -> Decoded:
    """Decode a file by its name, in UTF-8 or an encoding that can be detected.

    `.jsonl` gives a list of `Line`s, `.yaml` and `.yml` a YAML document, any other name a JSON document. With `every`,
    a file of several YAML documents gives a list of all, instead of the first.
    """
    data, encoding = convert_to_utf8(data)
    if file.endswith(".jsonl"):
        decoded = Decoded(*decode_jsonl(data))
    elif not file.endswith((".yaml", ".yml")):
        decoded = decode_json(data)
    else:
        decoded = decode_yaml(data, every=every)
    if not encoding or decoded.failed:
        return decoded
    return Decoded(decoded.value, (encoding_problem(encoding), *decoded.problems))


def detect_encoding(data: bytes) -> str:
    """Return the codec of a text; `utf-8` unless another one is certain.

    UTF-16 and UTF-32 are detected by their byte order mark or zero bytes. Windows-1252 (which includes Latin-1) is
    assumed if no bytes beyond ASCII are valid UTF-8, and all of them are letters or punctuation inside words.
    """
    if data.isascii():
        return _BY_ZEROS.get(tuple(map(bool, data[:4])), UTF8) if b"\0" in data[:4] else UTF8
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return codec
    if codec := _BY_ZEROS.get(tuple(map(bool, data[:4])), ""):
        return codec
    try:
        data.decode()
    except UnicodeDecodeError:
        return "cp1252" if _is_windows_1252(data) else UTF8
    return UTF8


def convert_to_utf8(data: bytes) -> tuple[bytes, str]:
    """Convert a text to UTF-8; returns it and its old encoding, "" if not converted."""
    codec = detect_encoding(data)
    if codec == UTF8:
        return data, ""
    try:
        text = data.decode(codec).lstrip("\N{ZERO WIDTH NO-BREAK SPACE}").encode()
    except UnicodeError:
        return data, ""
    return text, "Windows-1252 or Latin-1" if codec == "cp1252" else codec[:6].upper()


def _is_windows_1252(data: bytes) -> bool:
    """Return whether the text is plausible as Windows-1252, but not as UTF-8."""
    if _MULTIBYTE.search(data) or len(_HIGH.findall(data)) < len(_ANY_HIGH.findall(data)):
        return False
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return False
    return all(char.isalpha() or char in _PUNCTUATION for char in text if not char.isascii())


def _open(path: Path | str) -> int | Problem:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return Problem("not-a-file", "is not a regular file; not read")


def _unreadable(error: OSError) -> Problem:
    return Problem(UNREADABLE, f"cannot be read: {error.strerror or type(error).__name__}", torn=True)


def _read(descriptor: int, limit: int, start: int) -> RawFile | Problem:
    status = os.fstat(descriptor)
    if status.st_size > limit:
        return Problem("too-large", f"has {status.st_size:,} bytes; at most {limit:,} are read")
    if start:
        os.lseek(descriptor, start, os.SEEK_SET)
    chunks = []
    left = limit + 1 - start
    # One byte more than the size, so that usually one read is enough.
    wanted = min(max(status.st_size - start, 0) + 1, 1 << 26)
    while left > 0 and (chunk := os.read(descriptor, min(left, wanted))):
        chunks.append(chunk)
        left -= len(chunk)
        if len(chunk) < wanted and limit + 1 - left >= status.st_size:
            break
    if left <= 0:
        return Problem("too-large", f"grew over {limit:,} bytes while it was read")
    return RawFile(chunks[0] if len(chunks) == 1 else b"".join(chunks), Stamp.of(status))


# JSON

_MAX_DIGITS: Final = 18  # maximum digits of an integer; no count, time or pid has more
_NOT_STRUCTURE: Final = bytes(code for code in range(256) if code not in b'[]{}"')
_STRINGS: Final = lazy_regex(rb'"[^"]*"')
_DEPTH_CHANGE: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}
_SURROGATE: Final = lazy_regex("[\ud800-\udfff]")
_DOCUMENT_DECODER: Final = msgspec.json.Decoder()
_DOCUMENT_ENCODER: Final = msgspec.json.Encoder()
_ERRORS: Final = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError)


def is_nested_deeper(data: bytes, levels: int = MAX_DEPTH) -> bool:
    """Return whether valid JSON is nested deeper than `levels`; not recursive."""
    if data.count(b"[") + data.count(b"{") <= levels:
        return False
    if b"\\" in data:
        data = data.replace(b"\\\\", b"").replace(b'\\"', b"")
    # An empty string contains no brackets, so removing `""` does not change what is inside strings.
    structure = _STRINGS.sub(b"", data.translate(None, _NOT_STRUCTURE).replace(b'""', b""))
    return any(depth > levels for depth in itertools.accumulate(map(_DEPTH_CHANGE.__getitem__, structure)))


def decode_json(data: bytes) -> Decoded:
    """Decode one JSON document; NaN, Infinity and numbers out of range become null."""
    data = data.removeprefix(BOM)
    if is_nested_deeper(data):
        return _failed(TOO_DEEP)
    try:
        value = _DOCUMENT_DECODER.decode(data)
        encoded = _DOCUMENT_ENCODER.encode(value)
    except _ERRORS:
        return _decode_tolerantly(data)
    if count_quotes(encoded) < count_quotes(data):
        return _decode_tolerantly(data)  # a key occurs twice; the slow decoder names it
    return Decoded(value)


def decode_jsonl(data: bytes) -> tuple[list[Line], tuple[Problem, ...]]:
    """Decode every complete line; skips a last line without a line feed."""
    lines: list[Line] = []
    problems: list[Problem] = []
    complete = data.removeprefix(BOM)[: data.rfind(b"\n") + 1]
    for number, line in enumerate(complete.split(b"\n"), start=1):
        if not line.strip():
            continue
        decoded = decode_json(line)
        if not decoded.failed:
            lines.append(Line(number, decoded.value))
        problems += (Problem(one.code, one.message, f"line {number}", one.severity) for one in decoded.problems)
    return lines, tuple(problems)


def _failed(problem: Problem) -> Decoded:
    return Decoded(problems=(problem,), failed=True)


def count_quotes(data: bytes) -> int:
    """Count the quotation marks that delimit strings."""
    if b"\\" not in data:
        return data.count(b'"')
    if b"\\\\" in data:
        data = data.replace(b"\\\\", b"")
    return data.count(b'"') - data.count(b'\\"')


def _decode_tolerantly(data: bytes) -> Decoded:
    """Decode with Python's decoder, which accepts more and locates every defect."""
    if not data.strip(b" \t\r\n\0"):
        return _failed(Problem("empty", "is empty", torn=True))
    problems: dict[str, Problem] = {}

    def note(code: str, message: str) -> None:
        problems.setdefault(code, Problem(code, message, severity=Severity.WARNING))

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        record = dict(items)
        if len(record) < len(items):
            note("duplicate-key", duplicate_key_message(Counter(key for key, _ in items).most_common(1)[0][0]))
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
        note("bad-number", f"{name} is not a JSON number and was read as null")

    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        note("bad-encoding", f"is not UTF-8 (byte {error.start}); wrong bytes were replaced")
    decoder = json.JSONDecoder(
        object_pairs_hook=pairs, parse_int=integer, parse_float=fraction, parse_constant=constant, strict=False
    )
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        return _failed(Problem("bad-json", f"is not JSON: {error.msg}", place, torn=True))
    except (RecursionError, ValueError) as error:
        return _failed(Problem("bad-json", f"is not JSON: {visible_line(str(error), 80)}", torn=True))
    if "\\u" in text and _SURROGATE.search(encoded := json.dumps(value, ensure_ascii=False)):
        value = json.loads(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", encoded))
        note("bad-encoding", "contains half a surrogate pair; replaced")
    if not problems:
        note("bad-json", "contains control characters that JSON forbids; it was read anyway")
    return Decoded(value, tuple(problems.values()))


# YAML

_FLAGS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_LIBRARY_TOO_DEEP: Final = "exceeded maximum nesting depth"  # newer versions of libyaml allow 1,000 levels
_NUMBER: Final = lazy_regex(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class _UnsupportedYaml(Exception):
    """YAML document that is refused; the argument is the problem."""


def decode_yaml(data: bytes, *, every: bool = False, typed: bool = False) -> Decoded:
    """Decode the first YAML document, with every scalar as a string.

    Plain `null`, `~` and nothing are None. Scalars do not become booleans, numbers or times, so that IDs, tags and
    versions keep their spelling; `core.sources.normalize` converts where a number is expected. Aliases are refused,
    tags are ignored. With `every`, returns a list of all documents (separated by `---`) up to the first that cannot be
    read. With `typed`, plain numbers, `true` and `false` get their type, as in JSON.
    """
    import yaml  # for speed: most commands read no YAML

    if not data.removeprefix(BOM).strip(b" \t\r\n\0"):
        return Decoded(problems=(Problem("empty", "is empty", torn=True),), failed=True)
    problems: list[Problem] = []
    try:
        text = data.removeprefix(BOM).decode()
    except UnicodeDecodeError as error:
        text = data.decode(errors="replace")
        message = f"is not UTF-8 (byte {error.start}); wrong bytes were replaced"
        problems.append(Problem("bad-encoding", message, severity=Severity.WARNING))
    documents: list[Any] = []
    try:
        events = yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        # `any` advances to the next document.
        while (every or not documents) and any(isinstance(event, yaml.DocumentStartEvent) for event in events):
            documents.append(_build(events, problems, typed))
    except _UnsupportedYaml as refused:
        problems.append(refused.args[0])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        place = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        reason = str(error.problem if isinstance(error, yaml.MarkedYAMLError) else error)
        if reason == _LIBRARY_TOO_DEEP:
            problems.append(TOO_DEEP)
        else:
            problems.append(Problem("bad-yaml", f"is not YAML: {visible_line(reason, 120)}", place, torn=True))
    else:
        filled = [document for document in documents if document is not None]
        return Decoded(filled if len(filled) > 1 else next(iter(filled), None), tuple(problems))
    return Decoded(documents or None, tuple(problems), failed=not documents)


def _build(events: Iterator[yaml.Event], problems: list[Problem], typed: bool) -> Any:
    """Build the value of one document, with an explicit stack instead of recursion."""
    import yaml

    root: list[Any] = []
    stack: list[list[Any] | _Mapping] = [root]
    for event in events:
        if isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            place = f"line {mark.line + 1}" if mark else ""
            raise _UnsupportedYaml(Problem("yaml-alias", "uses an alias; such a file is not read", place))
        if isinstance(event, yaml.DocumentEndEvent):
            break
        if isinstance(event, yaml.ScalarEvent):
            is_key = isinstance(stack[-1], _Mapping) and stack[-1].key is None
            stack[-1].append(_scalar(event, typed and not is_key))
        elif isinstance(event, yaml.CollectionStartEvent):
            if len(stack) > MAX_DEPTH:
                raise _UnsupportedYaml(TOO_DEEP)
            stack.append(_Mapping() if isinstance(event, yaml.MappingStartEvent) else [])
        elif isinstance(event, yaml.CollectionEndEvent):
            done = stack.pop()
            if isinstance(done, _Mapping):
                for key in done.duplicates:
                    problems.append(Problem("duplicate-key", duplicate_key_message(key), severity=Severity.WARNING))
                stack[-1].append(done.record)
            else:
                stack[-1].append(done)
    return root[0] if root else None


class _Mapping:
    """YAML mapping under construction; `key` is None when a key comes next."""

    def __init__(self) -> None:
        self.record: dict[str, Any] = {}
        self.duplicates: list[str] = []
        self.key: str | None = None

    def append(self, value: Any) -> None:
        if self.key is None:
            self.key = value if isinstance(value, str) else ""
            if self.key in self.record:
                self.duplicates.append(self.key)
        else:
            self.record[self.key] = value
            self.key = None


def _scalar(event: yaml.ScalarEvent, typed: bool) -> Any:
    if not event.implicit[0]:
        return str(event.value)
    if event.value in ("", "~", "null", "Null", "NULL"):
        return None
    if typed and event.value in _FLAGS:
        return _FLAGS[event.value]
    if typed and _NUMBER.fullmatch(event.value):
        return float(event.value) if "." in event.value else int(event.value)
    return str(event.value)
