"""Check records against their schemas.

A compiled msgspec type accepts valid records quickly. Only if it refuses a record, the slower walk through the rules
runs and names each violation with its JSON pointer.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal, Optional, Union

import msgspec
from msgspec import Meta

from core.records.findings import MISSING, NOT_IN_SCHEMA, Finding, Severity
from core.records.times import parse_time
from core.sources import normalize, schema
from core.sources.debug_sessions import session_records
from core.sources.fields import escaped, shown
from core.sources.key_style import is_camel, respell, snake_keys
from core.sources.record_kinds import EPISODIC_REFLECTIONS, RecordKind
from core.sources.schema_rules import Rule
from core.storage.decoded import Line

_ID_MESSAGE: Final = "session_id is missing"
"""Not reported here: the reader of debug sessions reports it."""

_MAX_FINDINGS: Final = 20
"""Maximum violations that are reported for one record."""
_CLASSES: Final = {
    "string": (str,),
    "time": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "texts": (dict,),
}
_NAMES: Final = {
    "texts": "an object of strings",
    "time": "an ISO-8601 time",
    "array": "a list",
    "object": "an object",
    "integer": "a whole number",
    "boolean": "true or false",
}


def check(value: Mapping[str, Any], rule: Rule, file: str, pointer: str = "", *, texts: bool = False) -> list[Finding]:
    """Schema violations in one record; the record is used nevertheless.

    Args:
        pointer: Where the record is in the file.
        texts: Whether numbers and booleans are strings, as the YAML decoder returns them.
    """
    try:
        msgspec.convert(value, _compiled(_key(rule)), strict=not texts)
    except (msgspec.ValidationError, RecursionError):
        pass
    else:
        return []
    found: list[Finding] = []
    for place, code, severity, message in _object(value, rule, pointer, texts):
        if len(found) == _MAX_FINDINGS:
            break
        found.append(Finding(file, place, severity, code, message))
    return found


_rules: Final[dict[int, Rule]] = {}


def _key(rule: Rule) -> int:
    """A hashable key of a rule; rules live as long as the process."""
    _rules[id(rule)] = rule
    return id(rule)


@functools.cache
def _compiled(key: int) -> Any:
    """A type that refuses every record in which `_object` finds a violation; it may refuse more."""
    return _type(_rules[key])


def _type(rule: Rule) -> Any:
    if rule.kind == "object":
        if not rule.keys:
            return dict[str, Any]
        fields = [
            (name, _type(inner)) if inner.required else (name, Optional[_type(inner)], None)  # noqa: UP045
            for name, inner in sorted(rule.keys.items(), key=lambda item: not item[1].required)
        ]
        struct = msgspec.defstruct("Record", fields, gc=False)
        return Union[struct, str] if rule.or_text else struct  # noqa: UP007
    if rule.kind == "array":
        return list[Any] if rule.items is None else list[_type(rule.items)]  # type: ignore[misc]
    if rule.kind == "string" and rule.words:
        return Literal[(*rule.words, *rule.tolerated)]
    if rule.kind == "string":
        pattern = rf"\A(?:{rule.pattern})\Z" if rule.pattern else None
        return Annotated[str, Meta(pattern=pattern, min_length=rule.length or None)]
    if rule.kind in ("number", "integer"):
        low = None if rule.low == -math.inf else int(rule.low)
        high = None if rule.high == math.inf else int(rule.high)
        number: type = float if rule.kind == "number" else int
        return Annotated[number, Meta(ge=low, le=high)]
    return {"time": datetime, "boolean": bool, "texts": dict[str, str], "any": Any}[rule.kind]


_Violation = tuple[str, str, Severity, str]
"""JSON pointer, code, severity and message."""


def _object(record: Mapping[str, Any], rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    for name, inner in rule.keys.items():
        value = record.get(name)
        if value is not None:
            yield from _value(value, inner, f"{pointer}/{escaped(name)}", texts)
        elif inner.required:
            yield pointer, MISSING, Severity.WARNING, f"{name} is missing"


def _value(value: Any, rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    if texts and isinstance(value, str):
        value = _typed(value, rule.kind)
    if not _is_kind(value, rule.kind):
        if rule.or_text and isinstance(value, str):
            return
        if rule.kind == "time" and parse_time(value) is not None:
            yield pointer, NOT_IN_SCHEMA, Severity.INFO, f"expected an ISO-8601 time, found {shown(value)}; read as one"
            return
        percent = normalize.rate(value) if rule.rate else None
        if percent is not None:
            yield pointer, NOT_IN_SCHEMA, Severity.INFO, _read_as(value, percent)
        else:
            expected = _NAMES.get(rule.kind, f"a {rule.kind}")
            yield pointer, NOT_IN_SCHEMA, Severity.WARNING, f"expected {expected}, found {shown(value)}"
    elif isinstance(value, str):
        yield from ((pointer, NOT_IN_SCHEMA, *found) for found in _string(value, rule))
    elif isinstance(value, bool):
        return
    elif isinstance(value, int | float):
        if not rule.low <= value <= rule.high:
            percent = normalize.rate(value) if rule.rate else None
            if percent is not None:
                yield pointer, NOT_IN_SCHEMA, Severity.INFO, _read_as(value, percent)
                return
            limits = f"from {rule.low:g} to {rule.high:g}" if rule.high < math.inf else f"of at least {rule.low:g}"
            yield pointer, NOT_IN_SCHEMA, Severity.WARNING, f"expected a number {limits}, found {shown(value)}"
    elif isinstance(value, list) and rule.items is not None:
        for index, item in enumerate(value):
            if item is not None:
                yield from _value(item, rule.items, f"{pointer}/{index}", texts)
            else:
                yield f"{pointer}/{index}", NOT_IN_SCHEMA, Severity.WARNING, "is null"
    elif isinstance(value, dict) and rule.kind == "texts":
        for name, item in value.items():
            if not isinstance(item, str):
                message = f"expected a string, found {shown(item)}"
                yield f"{pointer}/{escaped(str(name))}", NOT_IN_SCHEMA, Severity.WARNING, message
    elif isinstance(value, dict):
        yield from _object(value, rule, pointer, texts)


def _is_kind(value: Any, kind: str) -> bool:
    if kind == "any":
        return True
    if isinstance(value, bool):
        return kind == "boolean"
    whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return whole or isinstance(value, _CLASSES[kind])


def _typed(value: str, kind: str) -> Any:
    """Convert a string to the expected number or boolean; else return it unchanged."""
    found: Any = None
    if kind == "integer":
        found = normalize.number(value)
        found = int(found) if found is not None and found.is_integer() else found
    elif kind == "number":
        found = normalize.number(value)
    elif kind == "boolean":
        found = normalize.flag(value)
    return value if found is None else found


def _string(value: str, rule: Rule) -> Iterator[tuple[Severity, str]]:
    if rule.kind == "time":
        if parse_time(value) is None:
            yield Severity.WARNING, f"expected an ISO-8601 time, found {shown(value)}"
    elif rule.words:
        if value not in rule.words and value not in rule.tolerated:
            yield Severity.WARNING, f"{shown(value)} is not one of {', '.join(rule.words)}"
    elif rule.pattern and not re.fullmatch(rule.pattern, value):
        severity = Severity.INFO if rule.advisory else Severity.WARNING
        yield severity, f"{shown(value)} does not match {rule.pattern}"
    elif len(value) < rule.length:
        yield Severity.WARNING, f"has {len(value)} characters; at least {rule.length} are expected"


def _read_as(value: Any, rate: float) -> str:
    return f"expected a number from 0 to 1, found {shown(value)}; read as {rate * 100:.3g} %"


def check_records(file: str, kind: RecordKind, value: Any, known: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """Schema violations in a decoded document.

    Args:
        value: The document with its keys in snake_case; for `.jsonl` its `Line`s.
        known: Findings of the reader; no place is reported twice.
    """
    if kind.schema is None:
        return ()
    is_yaml = file.endswith((".yaml", ".yml"))
    places = {finding.pointer for finding in known}
    return tuple(
        finding
        for pointer, record in _records(kind, value)
        for finding in check(record, kind.schema, file, pointer, texts=is_yaml)
        if finding.pointer not in places and finding.message != _ID_MESSAGE
    )


def normalized(value: Any) -> Any:
    """The document, or the `Line`s of one, with known keys in snake_case.

    The same object if they already are.
    """
    if isinstance(value, list) and value and isinstance(value[0], Line):
        if not any(is_camel(line.value) for line in value):
            return value
        return [Line(line.number, snake_keys(line.value)) for line in value]
    return snake_keys(value) if is_camel(value) else value


def in_own_style(findings: tuple[Finding, ...], value: Any) -> tuple[Finding, ...]:
    """Convert the pointers of findings in `normalized(value)` to pointers into `value`."""
    if not isinstance(value, dict | list):
        return findings
    lines = {f"line {line.number}": line.value for line in value if isinstance(line, Line)}
    return tuple(_respelled(finding, value, lines) for finding in findings)


def _respelled(finding: Finding, value: Any, lines: Mapping[str, Any]) -> Finding:
    base = finding.pointer.partition("/")[0]
    pointer = respell(finding.pointer, lines.get(base, value), base)
    return Finding(finding.file, pointer, finding.severity, finding.code, finding.message, finding.count)


def _records(kind: RecordKind, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Pointer and value of each record that the schema of the kind applies to."""
    if kind.schema is schema.DEBUG_SESSION:
        yield from ((pointer, item) for _, pointer, item in session_records(value))
    elif kind is EPISODIC_REFLECTIONS:
        yield from ((f"line {line.number}", line.value) for line in value if isinstance(line.value, dict))
    elif isinstance(value, dict):
        yield "", value
