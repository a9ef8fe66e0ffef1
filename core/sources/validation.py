"""Check records against their schemas.

A compiled msgspec type accepts valid records quickly. If it rejects a record, the rules are checked one by one, which
is slower, but gives each violation with its JSON pointer.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal, Union

import msgspec
from msgspec import Meta

from core.records.findings import MISSING, NOT_IN_SCHEMA, Finding, Severity
from core.records.times import parse_time
from core.sources import normalize
from core.sources.debug_sessions import session_records
from core.sources.fields import escape_key, quote_value
from core.sources.record_kinds import DEBUG_SESSION, EPISODIC_REFLECTIONS, RecordKind
from core.sources.schema import SCHEMAS, Rule

_ID_MESSAGE: Final = "session_id is missing"  # Not reported here, because the reader of debug sessions reports it.
_MAX_FINDINGS: Final = 20  # Maximum violations that are reported for one record.
_KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "a string"),
    "time": (str, "an ISO-8601 time"),
    "number": ((int, float), "a number"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
    "texts": (dict, "an object of strings"),
}
"""For each `Rule.kind`, the Python types of its values and its name in messages."""


def check(value: Mapping[str, Any], rule: Rule, file: str, pointer: str = "", *, texts: bool = False) -> list[Finding]:
    """Find schema violations in the record at `pointer`, without rejecting it.

    With `texts`, numbers and booleans may be strings, as the YAML decoder returns them.
    """
    try:
        msgspec.convert(value, compile_rule(rule), strict=not texts)
    except (msgspec.ValidationError, RecursionError):
        found = islice(_object(value, rule, pointer, texts), _MAX_FINDINGS)
        return [Finding(file, place, severity, code, message) for place, code, severity, message in found]
    return []


@functools.cache
def compile_rule(rule: Rule) -> Any:
    """Return a type that rejects every record in which `_object` finds violations."""
    if rule.kind == "object":
        if not rule.keys:
            return dict[str, Any]
        fields = [
            (name, compile_rule(inner)) if inner.required else (name, Union[compile_rule(inner), None], None)  # noqa: UP007
            for name, inner in sorted(rule.keys.items(), key=lambda item: not item[1].required)
        ]
        struct = msgspec.defstruct("Record", fields, gc=False)
        return Union[struct, str] if rule.or_text else struct  # noqa: UP007
    if rule.kind == "array":
        return list[Any] if rule.items is None else list[compile_rule(rule.items)]  # type: ignore[misc]
    if rule.kind == "string" and rule.words:
        return Literal[(*rule.words, *rule.tolerated)]
    if rule.kind == "string":
        pattern = rf"\A(?:{rule.pattern})\Z" if rule.pattern else None
        return Annotated[str, Meta(pattern=pattern, min_length=rule.length or None)]
    if rule.kind in ("number", "integer"):
        low, high = (None if math.isinf(limit) else int(limit) for limit in (rule.low, rule.high))
        number: type = float if rule.kind == "number" else int
        return Annotated[number, Meta(ge=low, le=high)]
    return {"time": datetime, "boolean": bool, "texts": dict[str, str]}[rule.kind]


_Violation = tuple[str, str, Severity, str]  # JSON pointer, code, severity and message.


def _object(record: Mapping[str, Any], rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    for name, inner in rule.keys.items():
        value = record.get(name)
        if value is not None:
            yield from _value(value, inner, f"{pointer}/{escape_key(name)}", texts)
        elif inner.required:
            yield pointer, MISSING, Severity.WARNING, f"{name} is missing"


def _value(value: Any, rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    if texts and isinstance(value, str):
        value = _convert_text(value, rule.kind)
    if isinstance(value, list) and rule.kind == "array" and rule.items is not None:
        for index, item in enumerate(value):
            if item is not None:
                yield from _value(item, rule.items, f"{pointer}/{index}", texts)
            else:
                yield f"{pointer}/{index}", NOT_IN_SCHEMA, Severity.WARNING, "is null"
    elif isinstance(value, dict) and rule.kind == "texts":
        for name, item in value.items():
            if not isinstance(item, str):
                message = f"expected a string, found {quote_value(item)}"
                yield f"{pointer}/{escape_key(str(name))}", NOT_IN_SCHEMA, Severity.WARNING, message
    elif isinstance(value, dict) and rule.kind == "object":
        yield from _object(value, rule, pointer, texts)
    elif not (rule.or_text and isinstance(value, str)):
        for severity, message in _scalar(value, rule):
            yield pointer, NOT_IN_SCHEMA, severity, message


def _scalar(value: Any, rule: Rule) -> Iterator[tuple[Severity, str]]:
    """Find violations in a value that is not an expected list or object."""
    is_kind = _is_kind(value, rule.kind)
    if is_kind and isinstance(value, str):
        yield from _string(value, rule)
    elif is_kind and (isinstance(value, bool) or rule.low <= value <= rule.high):
        return
    elif not is_kind and rule.kind == "time" and parse_time(value) is not None:
        yield Severity.INFO, f"expected an ISO-8601 time, found {quote_value(value)}; accepted as a time"
    elif rule.rate and (rate := normalize.rate(value)) is not None:
        yield Severity.INFO, f"expected a number from 0 to 1, found {quote_value(value)}; read as {rate * 100:.3g} %"
    elif is_kind:
        limits = f"from {rule.low:g} to {rule.high:g}" if rule.high < math.inf else f"of at least {rule.low:g}"
        yield Severity.WARNING, f"expected a number {limits}, found {quote_value(value)}"
    else:
        yield Severity.WARNING, f"expected {_KINDS[rule.kind][1]}, found {quote_value(value)}"


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return is_whole or isinstance(value, _KINDS[kind][0])


def _convert_text(value: str, kind: str) -> Any:
    """Convert a string to the expected number or boolean, or return it unchanged."""
    found: bool | float | None = None
    if kind == "boolean":
        found = normalize.flag(value)
    elif kind in ("integer", "number"):
        found = normalize.number(value)
        found = int(found) if kind == "integer" and found is not None and found.is_integer() else found
    return value if found is None else found


def _string(value: str, rule: Rule) -> Iterator[tuple[Severity, str]]:
    if rule.kind == "time":
        if parse_time(value) is None:
            yield Severity.WARNING, f"expected an ISO-8601 time, found {quote_value(value)}"
    elif rule.words:
        if value not in rule.words and value not in rule.tolerated:
            yield Severity.WARNING, f"{quote_value(value)} is not one of {', '.join(rule.words)}"
    elif rule.pattern and not re.fullmatch(rule.pattern, value):
        severity = Severity.INFO if rule.advisory else Severity.WARNING
        yield severity, f"{quote_value(value)} does not match {rule.pattern}"
    elif len(value) < rule.length:
        yield Severity.WARNING, f"has {len(value)} characters; at least {rule.length} are expected"


def check_records(file: str, kind: RecordKind, value: Any, known: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """Find schema violations in a decoded document with snake_case keys.

    Violations at the places of `known`, the findings of the reader, are left out.
    """
    if not kind.schema:
        return ()
    is_yaml = file.endswith((".yaml", ".yml"))
    places = {finding.pointer for finding in known}
    return tuple(
        finding
        for pointer, record in _records(kind, value)
        for finding in check(record, SCHEMAS[kind.schema], file, pointer, texts=is_yaml)
        if finding.pointer not in places and finding.message != _ID_MESSAGE
    )


def _records(kind: RecordKind, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate the records to which the schema of the kind applies, with pointers."""
    if kind.schema == DEBUG_SESSION:
        yield from ((pointer, item) for _, pointer, item in session_records(value))
    elif kind is EPISODIC_REFLECTIONS:
        yield from ((f"line {line.number}", line.value) for line in value if isinstance(line.value, dict))
    elif isinstance(value, dict):
        yield "", value
