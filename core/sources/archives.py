"""Read archived patterns from `shared/archive/` (docs/file-formats.md#archives)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from core.base.errors import BadInput
from core.config.paths import ProjectPaths, is_folder
from core.records.patterns import Pattern
from core.records.times import parse_time
from core.sources.key_style import RecordText
from core.sources.pattern_text import records
from core.sources.patterns import read_patterns
from core.storage.decoded import Problem
from core.storage.file_reader import MAX_PATTERN_BYTES, read_file
from core.storage.json_editor import BadJson

if TYPE_CHECKING:
    from core.records.findings import Finding


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
            archived, wrong = _read(file, read.data)
            found += archived
            findings += wrong
    return tuple(found), tuple(findings)


def _read(file: str, data: bytes) -> tuple[list[ArchivedPattern], list[Finding]]:
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
