"""Decoding of untrusted JSON and JSONL with limits; location of values in text."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from core.base.text import visible_line
from core.records.findings import Severity
from core.storage.decoded import BOM, MAX_DEPTH, TOO_DEEP, Decoded, Line, Problem, duplicate_key_message

_MAX_DIGITS: Final = 18  # maximum digits of an integer; no count, time or pid has more
_MAX_FAST_BYTES: Final = 8 << 20  # maximum size of a JSONL file that is decoded in one call
_NOT_STRUCTURE: Final = bytes(code for code in range(256) if code not in b'[]{}"')
_STRINGS: Final = re.compile(rb'"[^"]*"')
_DEPTH_CHANGE: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord('"'): 0}
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_DOCUMENT_DECODER: Final = msgspec.json.Decoder()
_DOCUMENT_ENCODER: Final = msgspec.json.Encoder()
_ERRORS: Final = (msgspec.MsgspecError, RecursionError, ValueError, OverflowError)
_SPACE: Final = re.compile(r"[ \t\n\r]*")
_FIRST_COLON: Final = re.compile(r'"[ \t]*:[ \t]*')


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
    if (values := _decode_valid_lines(complete)) is not None:
        return [Line(number, value) for number, value in enumerate(values, start=1)], ()
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


def _decode_valid_lines(complete: bytes) -> list[Any] | None:
    """Decode valid objects in one call; None if any line needs `decode_json`."""
    lines = complete.split(b"\n")[:-1]
    is_usual = len(complete) <= _MAX_FAST_BYTES and all(
        line[:1] == b"{" and line[-1:] == b"}" and line.count(b"[") + line.count(b"{") <= MAX_DEPTH for line in lines
    )
    if not is_usual:
        return None
    try:
        values = _DOCUMENT_DECODER.decode_lines(complete)
        encoded = _DOCUMENT_ENCODER.encode(values)
    except _ERRORS:
        return None
    return values if len(values) == len(lines) and count_quotes(encoded) == count_quotes(complete) else None


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


class Child(NamedTuple):
    """Member of an object or item of a list, as offsets into the text."""

    key: str | None
    start: int
    value: int
    end: int


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return float("inf")


DECODER: Final = json.JSONDecoder(parse_int=_integer)


def skip_space(text: str, position: int) -> int:
    """Skip white space; returns the offset of the next character."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def find_value_end(text: str, position: int) -> int:
    """Return the offset after the value at `position`."""
    return int(DECODER.raw_decode(text, position)[1])


def iterate_children(text: str, start: int) -> Iterator[Child]:
    """Return the children of the object or list at offset `start`."""
    closing = "}" if text[start] == "{" else "]"
    position = skip_space(text, start + 1)
    while text[position] != closing:
        key, value = None, position
        if closing == "}":
            key, after = DECODER.raw_decode(text, position)
            value = skip_space(text, skip_space(text, after) + 1)
        end = find_value_end(text, value)
        yield Child(key, position, value, end)
        position = skip_space(text, end)
        if text[position] == ",":
            position = skip_space(text, position + 1)


def first_child_value(text: str, start: int, step: str | int) -> int:
    """Return the offset of the first child with a key or index; reads no further."""
    position = skip_space(text, start + 1)
    if isinstance(step, int):
        for _ in range(step):
            position = skip_space(text, skip_space(text, find_value_end(text, position)) + 1)
        return position
    while True:
        key, after = DECODER.raw_decode(text, position)
        value = skip_space(text, skip_space(text, after) + 1)
        if key == step:
            return value
        position = skip_space(text, skip_space(text, find_value_end(text, value)) + 1)


def find_child(children: list[Child], step: str | int) -> tuple[Child, int]:
    """Return a child and its index, found by key (the last of equal keys) or index."""
    if isinstance(step, int):
        return children[step], step
    return next((child, index) for index, child in reversed(list(enumerate(children))) if child.key == step)


def colon_style(text: str, children: list[Child]) -> str:
    """Return the text between key and value of the children, or of the first member."""
    for child in reversed(children):
        if child.key is not None:
            between = text[find_value_end(text, child.start) : child.value]
            return between if between.strip(" \t") == ":" else ": "
    first = _FIRST_COLON.search(text)
    return first[0][1:] if first else ": "
