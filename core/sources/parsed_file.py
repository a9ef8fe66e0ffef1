"""Parse one file into the records that it contributes to a snapshot.

The result depends only on the name, bytes and stamp of the file, so that the index can store it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import count
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.steps import group_pairs
from core.base.text import visible_line
from core.files.file_reader import Problem, RawFile, Stamp, decode
from core.records.debug_sessions import DebugSession, Escalation
from core.records.episodes import Attempt, Task
from core.records.findings import Finding, Severity
from core.records.loops import AgentSession
from core.records.patterns import Pattern
from core.records.reflections import MemoryTask, Reflection
from core.sources.agent_sessions import parse_agent_sessions
from core.sources.debug_sessions import read_escalation, read_sessions, session_records
from core.sources.episodes import count_actions, parse_attempts, parse_tasks
from core.sources.keys import normalize_keys, restore_key_style
from core.sources.loop_join import LoopFact, directory_fact
from core.sources.loops import read_crash_log, read_loops
from core.sources.patterns import KnownRecords, read_patterns
from core.sources.record_kinds import DEBUG_SESSION, EPISODIC_REFLECTIONS, PATTERN_COPIES, PATTERNS, Format, RecordKind
from core.sources.reflections import read_memory, read_reflections
from core.sources.schema import SCHEMAS, check


class ParsedFile(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The records of one file, in its order."""

    patterns: tuple[Pattern, ...] = ()
    loops: tuple[LoopFact, ...] = ()
    reflections: tuple[Reflection, ...] = ()
    memory_tasks: tuple[MemoryTask, ...] = ()
    tasks: tuple[Task, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    debug_sessions: tuple[DebugSession, ...] = ()
    escalations: tuple[Escalation, ...] = ()
    agent_sessions: tuple[AgentSession, ...] = ()
    findings: tuple[Finding, ...] = ()


_Records = tuple[tuple[Any, ...], tuple[Finding, ...]]
_READERS: Final[Mapping[str, Callable[[str, Any, datetime], _Records]]] = {
    "reflections": read_reflections,
    "memory_tasks": read_memory,
    "tasks": lambda file, value, _: parse_tasks(file, value),
    "attempts": lambda file, value, _: parse_attempts(file, value),
    "debug_sessions": lambda file, value, _: read_sessions(file, value),
    "escalations": lambda file, value, _: read_escalation(file, value),
    "agent_sessions": lambda file, value, _: parse_agent_sessions(file, value),
}
"""For each collection, the reader of a document (arguments: file, decoded value, mtime)."""


def parse_file(file: str, kind: RecordKind, raw: RawFile, known: KnownRecords | None = None) -> ParsedFile | Problem:
    """Parse `file`, or return why it is unreadable; `core.index.logs` reads logs.

    `known` are the pattern records of its last parse, which makes this one faster; they are replaced.
    """
    match kind.format:
        case Format.DOCUMENT:
            parsed = _parse_document(file, kind, raw)
        case Format.PATTERNS:
            parsed = _parse_patterns(file, kind, raw, {} if known is None else known)
        case Format.ACTION_LOG:
            attempts, findings = count_actions(file, raw.data)
            return ParsedFile(attempts=attempts, findings=findings)
        case Format.CRASH_LOG:
            return ParsedFile(loops=(read_crash_log(file, raw.data, raw.stamp.modified_at),))
        case _:
            raise ValueError(f"{kind.format} is not the format of a file with records")
    if isinstance(parsed, Problem) or not parsed.findings:
        return parsed
    return replace(parsed, findings=condense(parsed.findings))


def parse_folder(file: str, stamp: Stamp) -> ParsedFile:
    """Return the record of a loop folder; `file` is its path with a final `/`."""
    fact = directory_fact(file, stamp.modified_at)
    return ParsedFile(loops=(fact,)) if fact else ParsedFile()


def _parse_patterns(file: str, kind: RecordKind, raw: RawFile, known: KnownRecords) -> ParsedFile | Problem:
    copy_folder = file.rpartition("/")[0] if kind is PATTERN_COPIES else ""
    found = read_patterns(file, raw.data, copy_folder, known, with_schema=kind is PATTERNS)
    if found.problem is not None:
        return found.problem
    known.clear()
    known.update(found.records)
    return ParsedFile(patterns=found.patterns, findings=found.findings)


def _parse_document(file: str, kind: RecordKind, raw: RawFile) -> ParsedFile | Problem:
    modified_at = raw.stamp.modified_at
    decoded = decode(file, raw.data, every=kind.all_documents)
    if decoded.failed:
        return decoded.problems[0]
    findings = tuple([problem.finding(file) for problem in decoded.problems])
    collections: dict[str, tuple[Any, ...]] = {}
    if "loops" in kind.collections:
        records = read_loops(file, decoded.value, modified_at)
        collections = {"loops": records.facts, "reflections": records.reflections}
        findings += records.findings
    else:
        value = normalize_keys(decoded.value)
        for name in kind.collections:
            collections[name], wrong = _READERS[name](file, value, modified_at)
            findings += wrong
        findings += check_records(file, kind, value, findings)
    if findings:
        findings = restore_key_style(findings, decoded.value)
    return ParsedFile(**collections, findings=findings)


def check_records(file: str, kind: RecordKind, value: Any, known: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """Find schema violations in a decoded document with snake_case keys.

    Violations at the places of `known`, the findings of the reader, are left out; so is a missing ID of a debug
    session, which its reader reports.
    """
    if not kind.schema:
        return ()
    is_yaml = file.endswith((".yaml", ".yml"))
    places = {finding.pointer for finding in known}
    return tuple(
        finding
        for pointer, record in _records(kind, value)
        for finding in check(record, SCHEMAS[kind.schema], file, pointer, texts=is_yaml)
        if finding.pointer not in places and finding.message != "session_id is missing"
    )


def _records(kind: RecordKind, value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate the records to which the schema of the kind applies, with pointers."""
    if kind.schema == DEBUG_SESSION:
        yield from ((pointer, item) for _, pointer, item in session_records(value))
    elif kind is EPISODIC_REFLECTIONS:
        yield from ((f"line {line.number}", line.value) for line in value if isinstance(line.value, dict))
    elif isinstance(value, dict):
        yield "", value


MAX_UNGROUPED: Final = 5  # Maximum number of similar findings that are listed separately.
MAX_FINDINGS: Final = 200  # Maximum findings of one file, so that it does not hide those of other files.
_MAX_EXAMPLES: Final = 3
_MAX_EXAMPLE_CHARS: Final = 80
_PLACES: Final = re.compile(r"(?<=/)\d+(?=/|$)|(?<=line )\d+")
_VALUES: Final = re.compile(r"'[^']*'|\d+")


def condense(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Condense the findings of one file, and limit their number.

    A group of more than `MAX_UNGROUPED` similar findings becomes its first one, with a count and examples.
    """
    condensed = _condense_groups((_kind(finding), finding) for finding in findings)
    if len(condensed) <= MAX_FINDINGS:
        return condensed
    message = f"{len(condensed) - MAX_FINDINGS:,} more findings of this file are not listed"
    more = Finding(condensed[0].file, "", Severity.INFO, "more-findings", message)
    return *condensed[:MAX_FINDINGS], more


def condense_files(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Condense the findings of many files: those of files with one name."""
    numbers = count()
    return _condense_groups((_group_of(finding, numbers), finding) for finding in findings)


def _group_of(finding: Finding, numbers: Iterator[int]) -> Hashable:
    """Return the key of a group; findings on whole files are not grouped."""
    if not finding.pointer.startswith("/"):
        return next(numbers)
    return _kind(finding), finding.file.rpartition("/")[2]


def _kind(finding: Finding) -> Hashable:
    """Group key, equal if a file's findings differ only in index, line and values."""
    place = _PLACES.sub("*", finding.pointer)
    return finding.code, finding.severity, place, _VALUES.sub("*", finding.message)


def _condense_groups(pairs: Iterable[tuple[Hashable, Finding]]) -> tuple[Finding, ...]:
    """Condense findings with the key of their group."""
    found: list[Finding] = []
    for group in group_pairs(pairs).values():
        found += group if len(group) <= MAX_UNGROUPED else [_condense_group(group)]
    return tuple(found)


def _condense_group(group: Sequence[Finding]) -> Finding:
    first, *others = group
    count = sum(finding.count for finding in group)
    is_one_file = all(finding.file == first.file for finding in others)
    places = [finding.pointer if is_one_file else finding.file for finding in others[:_MAX_EXAMPLES]]
    examples = ", ".join(visible_line(place, _MAX_EXAMPLE_CHARS) for place in places)
    message = f"{first.message} (and {count - 1:,} more like it, for example {examples})"
    return Finding(first.file, first.pointer, first.severity, first.code, message, count)
