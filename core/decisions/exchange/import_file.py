"""Parse a pattern file for an import; problems become findings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from core.base.paths import is_safe_id
from core.base.text import HIDDEN_CHAR, visible, visible_line
from core.decisions.exchange.export import plain
from core.decisions.exchange.redaction import without_secrets
from core.files.file_reader import convert_to_utf8, decode, decode_jsonl
from core.records.findings import Finding, Severity
from core.records.patterns import Pattern
from core.records.times import iso, parse_time
from core.sources import normalize
from core.sources.keys import snake_keys
from core.sources.patterns import read_patterns

MAX_IMPORT_BYTES: Final = 64 << 20  # Maximum size of an imported file.
MAX_RECORD_BYTES: Final = 256 << 10  # Maximum size of a single imported record.


class Arriving(Struct, frozen=True, kw_only=True):
    """The parsed records of a file to import; `file` is its name without folders.

    `records` have unique, usable IDs, in the order of the file; `refused` has the other records, each with a reason.
    """

    file: str
    records: tuple[tuple[Pattern, dict[str, Any]], ...] = ()
    refused: tuple[tuple[Pattern, str], ...] = ()
    findings: tuple[Finding, ...] = ()


def read_import(file: str, data: bytes) -> Arriving:
    """Parse a file to import; problems become findings, nothing is raised."""
    content = read_patterns(file, data, with_schema=True)
    findings = list(content.findings)
    if content.problem is not None:
        return Arriving(file=file, findings=(*findings, content.problem.finding(file)))
    document = _document(file, convert_to_utf8(data)[0])
    records: dict[str, tuple[Pattern, dict[str, Any]]] = {}
    refused: list[tuple[Pattern, str]] = []
    for pattern in content.patterns:
        record = snake_keys(plain(_at(document, pattern.pointer)))
        own = [one for one in content.findings if f"{one.pointer}/".startswith(f"{pattern.pointer}/")]
        why = _unusable(pattern, record, records) or _invalid(pattern, own)
        if why:
            findings.append(Finding(file, pattern.pointer, Severity.ERROR, "refused", why))
            refused.append((pattern, why))
            continue
        _normalize(record, [one.pointer.removeprefix(pattern.pointer) for one in own])
        findings += _doubts(record, file, pattern.pointer)
        records[pattern.id] = pattern, record
    if not content.patterns and all(finding.severity is not Severity.ERROR for finding in findings):
        findings.append(Finding(file, "", Severity.ERROR, "no-patterns", "contains no patterns"))
    usable = tuple(records.values())
    return Arriving(file=file, records=usable, refused=tuple(refused), findings=tuple(dict.fromkeys(findings)))


def _invalid(pattern: Pattern, findings: Sequence[Finding]) -> str:
    """Return why the schema rejects a record; "" if it is valid or convertible."""
    wrong = [finding for finding in findings if finding.severity is not Severity.INFO]
    if not wrong:
        return ""
    first = wrong[0]
    more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
    place = first.pointer.removeprefix(pattern.pointer)
    return f"is invalid: {f'{visible_line(place, 80)} ' if place else ''}{first.message}{more}"


def _normalize(record: dict[str, Any], pointers: Iterable[str]) -> None:
    """Convert rates and times at these JSON pointers to the form of the schema."""
    for pointer in pointers:
        parent, _, key = pointer.rpartition("/")
        holder = _at(record, parent)
        if isinstance(holder, dict) and key in holder:
            rate = normalize.rate(holder[key]) if key.endswith("_rate") else None
            time = iso(parse_time(holder[key])) if isinstance(holder[key], int | float) and rate is None else None
            holder[key] = rate if rate is not None else time or holder[key]


def _document(file: str, data: bytes) -> Any:
    """Return the document that the JSON pointers of `read_patterns` refer to."""
    if file.endswith(".jsonl"):
        return [line.value for line in decode_jsonl(data)[0]]
    decoded = decode(file, data)
    return [line.value for line in decode_jsonl(data)[0]] if decoded.failed else decoded.value


def _at(document: Any, pointer: str) -> Any:
    """Return the value at a JSON pointer, or None."""
    for part in pointer.split("/")[1:]:
        if isinstance(document, list) and part.isdecimal() and int(part) < len(document):
            document = document[int(part)]
        elif isinstance(document, dict):
            document = document.get(part.replace("~1", "/").replace("~0", "~"))
        else:
            return None
    return document


def _unusable(pattern: Pattern, record: Any, taken: Mapping[str, Any]) -> str:
    """Return why a record cannot be imported; "" if it can."""
    if pattern.is_unnamed:
        return "has no ID"
    if not is_safe_id(pattern.id):
        return f"ID '{visible_line(pattern.id, 60)}' is not a valid pattern ID"
    if pattern.id in taken:
        return f"ID {pattern.id} appears twice in the file; the first one counts"
    if not isinstance(record, dict):
        return "its record is not a JSON object"
    size = len(json.dumps(record))
    if size > MAX_RECORD_BYTES:
        return f"has {size:,} bytes; at most {MAX_RECORD_BYTES:,} are allowed"
    return ""


def _doubts(record: Mapping[str, Any], file: str, pointer: str) -> list[Finding]:
    """Return findings for secrets and invisible characters in a record."""
    found = []
    for place, text in _texts(record, pointer):
        if without_secrets(text) != text:
            found.append(Finding(file, place, Severity.WARNING, "secret", "contains what looks like a secret"))
        if visible(text).count(HIDDEN_CHAR) > text.count(HIDDEN_CHAR):
            found.append(Finding(file, place, Severity.WARNING, "invisible", "contains invisible characters"))
    return found


def _texts(value: Any, pointer: str) -> list[tuple[str, str]]:
    if isinstance(value, str):
        return [(pointer, value)]
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, item in items for found in _texts(item, f"{pointer}/{key}")]
