"""Import of a pattern file: parse and plan; docs/curation.md#import-and-export.

Problems in the file become findings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from core.base.paths import is_safe_id
from core.base.text import HIDDEN_CHAR, visible, visible_line
from core.decisions.export import LOCAL_KEYS, plain, pseudonym, without_secrets
from core.decisions.merge import (
    ORIGINS,
    arriving_shares,
    as_read,
    combine_counts,
    count_changes,
    lineage_changes,
    projects_of,
)
from core.files.file_reader import convert_to_utf8, decode, decode_jsonl
from core.index.similarity import SimilarityIndex
from core.records.findings import Finding, Severity
from core.records.patterns import ID_PREFIXES, Pattern, PatternType
from core.records.times import iso, parse_time
from core.sources import normalize
from core.sources.keys import snake_keys
from core.sources.pattern_text import id_key
from core.sources.patterns import read_patterns
from core.sources.schema import CLAIMED_RATE

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


_NUMBERED: Final = re.compile(r"(?:pat-(?:error|success|anti)|tmpl)-([a-z0-9-]{1,80})-\d{3}")
_GROWING: Final = frozenset(
    {
        *("pattern_id", "template_id", "id", "source_loops", "effectiveness_trend", "last_used", "last_seen"),
        *("first_discovered", "tags", "usage_count", "occurrences", "success_rate", "successful_applications"),
        *("failed_applications", "failure_rate", "occurrence_count", CLAIMED_RATE),
        *("related_patterns", "aliases", "anchors", "anchor_commit", ORIGINS),
    }
)
"""Keys that change while a pattern is used; the other keys are its text."""
NextId = Callable[[str, str], str]  # Returns a free ID for a prefix and a slug.


class Action(StrEnum):
    """The action for one record of an imported file."""

    NEW = "new"
    TEXT = "text"  # The local text is unchanged since the last import: the newer imported text replaces it.
    CONFLICT = "conflict"  # Another text has the same ID: the imported record gets a new ID.
    COUNTS = "counts"  # The texts are equal: counts and lineage are merged.
    DUPLICATE = "duplicate"
    """The text exists under another ID: the records are merged, and the imported ID becomes an alias."""
    SAME = "same"
    REFUSED = "refused"


class Row(Struct, frozen=True, kw_only=True):
    """The plan for one record.

    `pattern_id` is the ID in the file (untrusted), `target` that of the new or changed pattern, "" if there is none.
    `record` is inserted; if it is None, the keys `set` and `unset` of the existing record change. `theirs`, the
    imported record, is stored for comparison with the next import. `similar` has (ID, similarity 0..1), best first.
    `content_hash` is that of a new text, which is quarantined, or "". `why` is the reason, if the action does not
    explain it.
    """

    action: Action
    pattern_id: str
    type: PatternType
    target: str = ""
    record: dict[str, Any] | None = None
    set: dict[str, Any] = {}
    unset: tuple[str, ...] = ()
    theirs: dict[str, Any] = {}
    similar: tuple[tuple[str, float], ...] = ()
    content_hash: str = ""
    why: str = ""


class ImportPlan(Struct, frozen=True, kw_only=True):
    """The plan for one file, with one row per record, and the problems in the file."""

    file: str
    rows: tuple[Row, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def changes(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.action not in (Action.SAME, Action.REFUSED))


class LocalRegistry(Struct, frozen=True, kw_only=True):
    """The local registry that an import is compared with.

    `records` are those that can be written, `imported` the last imported ones by local ID, `archived` the IDs in
    archives. `threshold` is the minimum similarity of a duplicate, 0..1; `origin` is the ID of this project.
    """

    patterns: Mapping[str, Pattern]
    records: Mapping[str, Mapping[str, Any]]
    imported: Mapping[str, Mapping[str, Any]]
    archived: frozenset[str]
    index: SimilarityIndex
    threshold: float
    origin: str


def plan_import(arriving: Arriving, known: LocalRegistry, next_id: NextId, now: datetime) -> ImportPlan:
    """Plan an import; `next_id` returns IDs unused in registry, archives and file."""
    planner = _Planner(known, next_id, now)
    rows = [planner.row(pattern, record) for pattern, record in arriving.records]
    rows += [_refused(pattern, why) for pattern, why in arriving.refused]
    return ImportPlan(file=arriving.file, rows=tuple(rows), findings=arriving.findings)


class _Planner:
    def __init__(self, known: LocalRegistry, next_id: NextId, now: datetime) -> None:
        self._known = known
        self._next_id = next_id
        self._now = now
        self._records = dict(known.records)  # two records of the file may change the same local record
        self._by_alias = {name: id for id in known.records for name in known.patterns[id].aliases}
        self._by_text = {text_of(known.patterns[id]): id for id in known.records}

    def row(self, pattern: Pattern, theirs: dict[str, Any]) -> Row:
        known = self._known
        theirs = {key: value for key, value in theirs.items() if key not in LOCAL_KEYS}
        ours = known.patterns.get(pattern.id)
        if ours is not None and ours.copy_folder:
            ours = None  # only a copy, not in the registry
        alike = self._by_text.get(text_of(pattern))
        if ours is None and (named := self._by_alias.get(pattern.id)) and known.patterns[named].type is pattern.type:
            return self._counts(Action.COUNTS, pattern, theirs, named)
        if ours is None and alike is not None:
            return self._counts(Action.DUPLICATE, pattern, theirs, alike)
        if ours is None and pattern.id in known.archived:
            return _refused(pattern, f"it is in the archive; see: ralphdeck pattern prune --restore {pattern.id}")
        if ours is None:
            return self._inserted(Action.NEW, pattern, theirs, pattern.id)
        if pattern.id not in known.records:
            return _refused(pattern, f"{visible_line(ours.file, 120)} cannot be changed")
        if ours.type is pattern.type and text_of(ours) == text_of(pattern):
            return self._counts(Action.COUNTS, pattern, theirs, pattern.id)
        base = known.imported.get(pattern.id)
        if base is not None and ours.type is pattern.type:
            before = text_of(as_read(base, pattern.type))
            if before == text_of(pattern):
                return self._counts(Action.COUNTS, pattern, theirs, pattern.id)
            if before == text_of(ours):
                return self._text(pattern, theirs, base)
        if alike is not None:
            return self._counts(Action.COUNTS, pattern, theirs, alike)
        slug = found[1] if (found := _NUMBERED.fullmatch(pattern.id)) else "imported"
        related = [pattern.id, *(name for name in pattern.related if name != pattern.id)]
        free = self._next_id(ID_PREFIXES[pattern.type], slug)
        return self._inserted(Action.CONFLICT, pattern, {**theirs, "related_patterns": related}, free)

    def _inserted(self, action: Action, pattern: Pattern, theirs: dict[str, Any], target: str) -> Row:
        key = id_key(theirs)
        if key not in theirs and pattern.type is PatternType.TEMPLATE:
            key = "template_id"
        named = theirs if theirs.get(key) == target else {**theirs, key: target}
        shares = arriving_shares(theirs, pattern.type, self._known.origin)
        record = {**named, ORIGINS: shares} if shares or ORIGINS in theirs else named
        read = as_read(record, pattern.type)
        self._by_text.setdefault(text_of(read), target)
        return _row(
            action,
            pattern,
            target=target,
            record=record,
            theirs=theirs,
            similar=self._known.index.nearest(read, self._known.threshold),
            content_hash=read.content_hash,
        )

    def _counts(self, action: Action, pattern: Pattern, theirs: dict[str, Any], target: str) -> Row:
        if target not in self._known.records:
            return _refused(pattern, f"its text equals {target} of this file")
        changes = self._changes(pattern, theirs, target)
        if pattern.id != target and action is Action.DUPLICATE:
            changes["aliases"] = [*as_read(self._records[target], pattern.type).aliases, pattern.id]
        self._records[target] = {**self._records[target], **changes}
        return _row(action if changes else Action.SAME, pattern, target=target, set=changes, theirs=theirs)

    def _text(self, pattern: Pattern, theirs: dict[str, Any], base: Mapping[str, Any]) -> Row:
        ours = self._records[pattern.id]
        texts = {key: value for key, value in theirs.items() if key not in _GROWING and ours.get(key) != value}
        changes = texts | self._changes(pattern, theirs, pattern.id)
        present = theirs.keys() | _GROWING | {*LOCAL_KEYS}
        removed = tuple(key for key in base if key in ours and key not in present)
        after = {key: value for key, value in {**ours, **changes}.items() if key not in removed}
        self._records[pattern.id] = after
        hashed = as_read(after, pattern.type).content_hash
        return _row(
            Action.TEXT, pattern, target=pattern.id, set=changes, unset=removed, theirs=theirs, content_hash=hashed
        )

    def _changes(self, pattern: Pattern, theirs: dict[str, Any], target: str) -> dict[str, Any]:
        """Return the keys of the local record that change when `theirs` is merged."""
        known, ours = self._known, self._records[target]
        read = as_read(ours, pattern.type)
        theirs = self._with_our_loops(read, theirs)
        total, shares = combine_counts(ours, theirs, pattern.type, known.origin, known.imported.get(target))
        changes = lineage_changes(ours, theirs, pattern.type)
        last_used = max(filter(None, (read.last_used, pattern.last_used)), default=self._now)
        changes |= count_changes(ours, total, pattern.type, last_used)
        if shares != ours.get(ORIGINS, {}):
            changes[ORIGINS] = shares
        return changes

    def _with_our_loops(self, ours: Pattern, theirs: dict[str, Any]) -> dict[str, Any]:
        """Return `theirs` with local loop IDs where one side uses pseudonyms."""
        entries = theirs.get("source_loops")
        if not isinstance(entries, list):
            return theirs
        origins = {self._known.origin, *projects_of(theirs)}
        known = {loop.loop_id for loop in ours.source_loops}
        names = {pseudonym(loop_id, origin): loop_id for loop_id in known for origin in origins}

        def name_of(loop_id: str) -> str:
            if loop_id in known:
                return loop_id
            others = (pseudonym(loop_id, origin) for origin in origins)
            return names.get(loop_id) or next((name for name in others if name in known), loop_id)

        def named(entry: Any) -> Any:
            if isinstance(entry, str):
                return name_of(entry)
            if isinstance(entry, dict) and isinstance(loop_id := entry.get("loop_id"), str):
                return {**entry, "loop_id": name_of(loop_id)}
            return entry

        return {**theirs, "source_loops": [named(entry) for entry in entries]}


def _row(action: Action, pattern: Pattern, **plan: Any) -> Row:
    return Row(action=action, pattern_id=pattern.id, type=pattern.type, **plan)


def _refused(pattern: Pattern, why: str) -> Row:
    return _row(Action.REFUSED, pattern, why=why)


def text_of(pattern: Pattern) -> tuple[object, ...]:
    """Return the content of a pattern without its ID; equal contents are duplicates."""
    return (
        *(pattern.type, pattern.description, pattern.use_case, pattern.category),
        *(pattern.error_type, pattern.error_message, pattern.error_pattern, pattern.places),
        *(pattern.location_hints, pattern.task_pattern, pattern.template_code, pattern.template_language),
        *(frozenset(pattern.placeholders), pattern.diff_pattern, pattern.steps, pattern.tools, pattern.preconditions),
        *(pattern.benefits, pattern.limitations, pattern.symptoms, pattern.why_it_fails),
        *(pattern.better_alternative, pattern.better_pattern_id),
    )
