"""Read pattern files of every known layout as `Pattern` records, and the archives of patterns.

A file is split into records before any record is decoded, so that a defective record affects only itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Raw, Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.paths import ProjectPaths, is_folder
from core.files.decoded import Problem, encoding_problem
from core.files.file_reader import MAX_PATTERN_BYTES, convert_to_utf8, decode_json, read_file
from core.files.json_editor import BadJson
from core.records.findings import MISSING, Finding, Severity
from core.records.patterns import Pattern, PatternType
from core.records.times import parse_time
from core.sources.fields import Fields, quote_value
from core.sources.keys import SNAKE, RecordText, is_camel, respell, snake_keys
from core.sources.pattern_record import id_key_of, read_pattern
from core.sources.pattern_text import PatternItem, decode_node, id_of, open_document, records, split_items
from core.sources.schema import PATTERNS, SCHEMAS, check


class ReadRecord(Struct, frozen=True, gc=False):
    """What a record of a file gave; `type` is that of `PatternItem`."""

    type: PatternType | None
    pattern: Pattern | None
    findings: tuple[Finding, ...]


KnownRecords: TypeAlias = dict[bytes, ReadRecord]
"""Records of a file that need not be decoded again, by an 8-byte digest of their text."""


class PatternFile(Struct, frozen=True):
    """The patterns of one file, in its order, and its findings.

    `problem` is None, or the reason why the file could not be read at all.
    """

    patterns: tuple[Pattern, ...] = ()
    findings: tuple[Finding, ...] = ()
    records: KnownRecords = {}
    problem: Problem | None = None


def read_patterns(
    file: str,
    data: bytes,
    copy_folder: str = "",
    known: Mapping[bytes, ReadRecord] = MappingProxyType({}),
    *,
    with_schema: bool = False,
) -> PatternFile:
    """Read all patterns of a pattern file.

    `file`, its project-relative name, suggests the type of records without one. `data` is JSON, JSONL or YAML, in UTF-8
    or an encoding that can be detected. `copy_folder` is the folder of a file outside `shared/patterns`; such a file
    may contain other things, so an object without an ID is skipped without a finding. `known` are the records of the
    last read of this file: those with the same text and place give the same object. `with_schema` adds findings for
    schema violations.
    """
    data, encoding = convert_to_utf8(data)
    document = open_document(file, data)
    if document.failed:
        return PatternFile(problem=document.problems[0])
    is_yaml = file.endswith((".yaml", ".yml")) if with_schema else None
    findings = [problem.finding(file) for problem in document.problems]
    if encoding:
        findings.append(encoding_problem(encoding).finding(file))
    about_file: list[Finding] = []
    items = split_items(file, document.value, about_file)
    by_digest: KnownRecords = {}
    patterns: list[Pattern] = []
    unnamed: Counter[str] = Counter()
    for item in items:
        digest = blake2b(item.node, digest_size=8).digest() if type(item.node) is Raw and not item.key else b""
        record = known.get(digest)
        if record is None or record.pattern is None or record.type is not item.type:
            record = ReadRecord(item.type, *_read_item(file, item, copy_folder, is_yaml))
        elif record.pattern.pointer != item.pointer:
            record = _move(record, record.pattern, item.pointer)
        if digest:
            by_digest[digest] = record
        findings += record.findings
        if (pattern := record.pattern) is None:
            continue
        if pattern.is_unnamed:  # several records may have the same provisional ID
            unnamed[pattern.id] += 1
            if unnamed[pattern.id] > 1:
                pattern = replace(pattern, id=f"{pattern.id}-{unnamed[pattern.id]}")
        patterns.append(pattern)
    if not copy_folder:
        findings += about_file
    if is_yaml is not None and isinstance(document.value, dict):
        findings += _check_registry(file, document.value, is_yaml, has_records=bool(items))
    return PatternFile(tuple(patterns), tuple(findings), by_digest)


def _move(record: ReadRecord, pattern: Pattern, pointer: str) -> ReadRecord:
    """Return the same record at another place of the file."""
    moved = (replace(one, pointer=pointer + one.pointer.removeprefix(pattern.pointer)) for one in record.findings)
    return ReadRecord(record.type, replace(pattern, pointer=pointer), tuple(moved))


def _read_item(
    file: str, item: PatternItem, copy_folder: str, is_yaml: bool | None
) -> tuple[Pattern | None, tuple[Finding, ...]]:
    """Read one record; with `is_yaml` None, its schema is not checked."""
    findings: list[Finding] = []
    record = _record(file, item, findings)
    if record is None:
        return None, tuple(findings)
    original = record.mapping
    # Outside the registry, records without an ID and entries of an index only refer to patterns.
    if copy_folder and (not id_of(original, item.key) or {"content_hash", "file"} <= original.keys()):
        return None, tuple(findings)
    if is_camel(original):
        record = Fields(file, snake_keys(original), findings, item.pointer)
    pattern = read_pattern(record, item, copy_folder)
    # No schema applies to a record without an ID or a type.
    if (
        is_yaml is not None
        and not pattern.is_unnamed
        and not any(finding.code == "unknown-type" for finding in findings)
    ):
        value = record.mapping
        if item.key and id_of(value, item.key) == item.key:
            value = {id_key_of(pattern.type): item.key, **value}
        if violations := check(value, PATTERNS[pattern.type], file, item.pointer, texts=is_yaml):
            reported = {finding.pointer for finding in findings}
            findings += (found for found in violations if found.code == MISSING or found.pointer not in reported)
    if record.mapping is not original:
        findings = [replace(one, pointer=respell(one.pointer, original, item.pointer)) for one in findings]
    return pattern, tuple(findings)


def _record(file: str, item: PatternItem, findings: list[Finding]) -> Fields | None:
    """Decode a record; None, with a finding, if it is not an object."""
    value = item.node
    if isinstance(value, Raw):
        decoded = decode_json(bytes(value))
        if decoded.problems:
            findings += (Finding(file, item.pointer, one.severity, one.code, one.message) for one in decoded.problems)
        if decoded.failed:
            return None
        value = decoded.value
    if isinstance(value, dict):
        return Fields(file, value, findings, item.pointer)
    message = f"expected a pattern, found {quote_value(value)}"
    findings.append(Finding(file, item.pointer, Severity.ERROR, "wrong-type", message))
    return None


def _check_registry(file: str, top: Mapping[str, Any], is_yaml: bool, *, has_records: bool) -> Iterator[Finding]:
    """Find schema violations in the parts of a pattern file that are not patterns."""
    names = {SNAKE.get(key, key): key for key in top}
    head = {name: snake_keys(decode_node(top[key])) for name, key in names.items() if name in SCHEMAS["registry"].keys}
    for one in check(head, SCHEMAS["registry"], file, texts=is_yaml):
        yield replace(one, pointer=respell(one.pointer, dict.fromkeys(top)))
    if has_records and "pattern_registry" in names and "version" not in names:
        yield Finding(file, "", Severity.INFO, MISSING, "version is missing; it is read as 1.0.0")


class ArchivedPattern(Struct, frozen=True, kw_only=True):
    """A pattern archived in `file`, with the state it had then.

    `at` is None if unknown. `source` is the file that contained it; `source`, `reason` and `by` are "" if unknown.
    """

    pattern: Pattern
    file: str
    at: datetime | None = None
    reason: str = ""
    by: str = ""
    source: str = ""


def read_archives(paths: ProjectPaths) -> tuple[tuple[ArchivedPattern, ...], tuple[Finding, ...]]:
    """Read all archived patterns, newest month first, and findings for the archives."""
    found: list[ArchivedPattern] = []
    findings: list[Finding] = []
    if not is_folder(paths.archive):
        return (), ()
    for path in sorted(paths.archive.glob("*.json"), reverse=True):
        file = paths.relative(path)
        try:
            read = read_file(paths.inside(file), paths.aiwg, MAX_PATTERN_BYTES)
        except BadInput as error:
            findings.append(Problem("link-outside", str(error)).finding(file))
            continue
        if isinstance(read, Problem):
            findings.append(read.finding(file))
        elif read is not None:
            archived, wrong = _read_archive(file, read.data)
            found += archived
            findings += wrong
    return tuple(found), tuple(findings)


def _read_archive(file: str, data: bytes) -> tuple[list[ArchivedPattern], list[Finding]]:
    content = read_patterns(file, data)
    findings = list(content.findings)
    if content.problem is not None:
        return [], [*findings, content.problem.finding(file)]
    try:
        values = {record.id: record.value for record in records(RecordText(data))}
    except BadJson:
        values = {}
    named = (pattern for pattern in content.patterns if not pattern.is_unnamed)  # only IDs can be restored
    return [_read_archived(pattern, values.get(pattern.id, {})) for pattern in named], findings


def _read_archived(pattern: Pattern, record: dict[str, object]) -> ArchivedPattern:
    note = record.get("archived")  # time, reason and user
    if not isinstance(note, dict):
        note = {"at": record.get("archived_at"), "reason": record.get("archived_reason")}
    texts = (value if isinstance(value := note.get(key), str) else "" for key in ("reason", "by", "from"))
    reason, by, source = texts
    at = parse_time(note.get("at"))
    return ArchivedPattern(pattern=pattern, file=pattern.file, at=at, reason=reason, by=by, source=source)
