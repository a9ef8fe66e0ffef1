"""Schema checks of documents (docs/file-formats.md#schemas)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core.records.findings import Finding
from core.sources import schema
from core.sources.debug_sessions import session_records
from core.sources.key_style import is_camel, respell, snake_keys
from core.sources.record_kinds import EPISODIC_REFLECTIONS, RecordKind
from core.sources.validation import check
from core.storage.decoded import Line

_ID_MESSAGE: Final = "session_id is missing"
"""Not reported here: the reader of debug sessions reports it."""


def check_records(file: str, kind: RecordKind, value: Any, known: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """Schema violations in a decoded document.

    Args:
        file: Project-relative name.
        kind: Its kind, which names the schema.
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
