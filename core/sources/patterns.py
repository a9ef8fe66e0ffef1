"""Read pattern files of every known layout as `Pattern` records.

A file is split into records before any record is decoded, so that a defective record affects only itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain
from operator import attrgetter
from typing import Any, Final

from msgspec import Raw, Struct
from msgspec.structs import replace

from core.records.findings import MISSING, Finding, Severity
from core.records.patterns import Pattern, PatternType
from core.sources.fields import Fields, quote_value
from core.sources.key_style import SNAKE, is_camel, respell, snake_keys
from core.sources.pattern_blocks import PatternBlocks
from core.sources.pattern_record import id_key_of, read_pattern
from core.sources.pattern_text import PatternItem, decode_node, id_of, open_document, split_items
from core.sources.schema import PATTERNS, SCHEMAS
from core.sources.usual_patterns import read_usual_pattern
from core.sources.validation import check
from core.storage.decoded import Problem, encoding_problem
from core.storage.file_reader import convert_to_utf8
from core.storage.json_reader import decode_json

_PROGRESS_RECORDS: Final = 200  # Number of records between two calls of `progress`.


class PatternFile(Struct, frozen=True):
    """The patterns of one file, in its order, and its findings.

    `problem` is None, or the reason why the file could not be read at all.
    """

    patterns: tuple[Pattern, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None


class ReadRecord(Struct, frozen=True, array_like=True, gc=False):
    """What one record of a file gave; with a `digest`, the next read of the file can use it again."""

    digest: bytes
    type: PatternType | None
    pattern: Pattern | None
    findings: tuple[Finding, ...]


class PatternPart(Struct, frozen=True, array_like=True):
    """Consecutive records of a file, with the findings on the file before and after them.

    Several records without an ID may have the same provisional ID (see `join_parts`).
    """

    records: tuple[ReadRecord, ...]
    before: tuple[Finding, ...] = ()
    after: tuple[Finding, ...] = ()


class EarlierPatterns:
    """The last read of a pattern file, which makes the next one faster.

    `blocks` are those of a file read before in which each record is a pattern in one list, with its own ID.
    """

    def __init__(self) -> None:
        self.records: tuple[ReadRecord, ...] = ()
        self.patterns: tuple[Pattern, ...] = ()
        self.blocks: PatternBlocks | None = None


def read_patterns(
    file: str,
    data: bytes,
    copy_folder: str = "",
    known: EarlierPatterns | None = None,
    *,
    with_schema: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> PatternFile:
    """Read all patterns of a pattern file (see `PatternReader`).

    `known` has the last read of this file and is updated. Unchanged records are not decoded again, and from the second
    change on only some records near changed ones are looked at. `progress` is called at intervals with the number of
    records read so far and their total.
    """
    if known is not None and (found := _read_change(file, data, known, with_schema=with_schema)) is not None:
        return found
    reader = PatternReader(file, data, copy_folder, with_schema=with_schema)
    if reader.problem is not None:
        return PatternFile(problem=reader.problem)
    is_read_again = known is not None and bool(known.records)
    part = reader.read(known=known.records if known is not None else (), progress=progress)
    found = join_parts([part], known)
    if known is not None and is_read_again and not (copy_folder or part.before or part.after):
        known.blocks = reader.blocks(data, part.records)
    return found


def _read_change(file: str, data: bytes, known: EarlierPatterns, *, with_schema: bool) -> PatternFile | None:
    """Read a file of which only some records have changed; None if it must be read as a whole."""
    change = known.blocks.find_change(data) if known.blocks is not None else None
    if change is None:
        return None
    before, changed, after = (known.records[place] for place in change.places)
    others = known.patterns[change.places[0]], known.patterns[change.places[2]]
    if len(change.nodes) != len(changed) and after:
        return None  # the pointers of all records behind are different
    list_pointer = known.patterns[0].pointer.rpartition("/")[0]
    items = [
        PatternItem((), f"{list_pointer}/{index}", node, type=known.records[0].type)
        for index, node in enumerate(change.nodes, change.start)
    ]
    new = tuple(_read_items(items, file, "", False if with_schema else None, changed))
    if not all(map(_is_plain, new)):
        return None
    known.records = before + new + after
    known.patterns = (*others[0], *(record.pattern for record in new if record.pattern is not None), *others[1])
    known.blocks = change.blocks
    return PatternFile(known.patterns, tuple(chain.from_iterable(map(_findings, known.records))))


_findings: Final = attrgetter("findings")


def _is_plain(record: ReadRecord) -> bool:
    return bool(record.digest) and record.pattern is not None and not record.pattern.is_unnamed


def join_parts(parts: Iterable[PatternPart], known: EarlierPatterns | None = None) -> PatternFile:
    """Join all parts of a file; makes the provisional IDs of records without one unique. `known` is updated."""
    patterns: list[Pattern] = []
    findings: list[Finding] = []
    unnamed: Counter[str] = Counter()
    records: list[ReadRecord] = []
    for part in parts:
        records += part.records
        findings += part.before
        for record in part.records:
            findings += record.findings
            if (pattern := record.pattern) is None:
                continue
            if pattern.is_unnamed:
                unnamed[pattern.id] += 1
                if unnamed[pattern.id] > 1:
                    pattern = replace(pattern, id=f"{pattern.id}-{unnamed[pattern.id]}")
            patterns.append(pattern)
        findings += part.after
    if known is not None:
        known.records, known.patterns, known.blocks = tuple(records), tuple(patterns), None
    return PatternFile(tuple(patterns), tuple(findings))


class PatternReader:
    """Reads the records of a pattern file, all at once or in parts.

    `file`, its project-relative name, suggests the type of records without one. `data` is JSON, JSONL or YAML, in UTF-8
    or an encoding that can be detected. `copy_folder` is the folder of a file outside `shared/patterns`; such a file
    may contain other things, so an object without an ID is skipped without a finding. `with_schema` adds findings for
    schema violations. `problem` is the reason why the file cannot be read at all, or None.
    """

    def __init__(self, file: str, data: bytes, copy_folder: str = "", *, with_schema: bool = False) -> None:
        data, encoding = convert_to_utf8(data)
        document = open_document(file, data)
        self.problem = document.problems[0] if document.failed else None
        self._file, self._copy_folder = file, copy_folder
        self._is_yaml = file.endswith((".yaml", ".yml")) if with_schema else None
        self._before = [problem.finding(file) for problem in document.problems]
        if encoding:
            self._before.append(encoding_problem(encoding).finding(file))
        self._after: list[Finding] = []
        self._items = [] if document.failed else split_items(file, document.value, self._after)
        if copy_folder:
            self._after = []
        if self._is_yaml is not None and isinstance(document.value, dict):
            self._after += _check_registry(file, document.value, self._is_yaml)
            keys = {SNAKE.get(key, key) for key in document.value}
            if self._items and "pattern_registry" in keys and "version" not in keys:
                message = "version is missing; it is read as 1.0.0"
                self._after.append(Finding(file, "", Severity.INFO, MISSING, message))

    @property
    def count(self) -> int:
        """Number of records."""
        return len(self._items)

    def read(
        self,
        part: int = 0,
        parts: int = 1,
        known: Iterable[ReadRecord] = (),
        progress: Callable[[int, int], None] | None = None,
    ) -> PatternPart:
        """Read one of equal parts, counted from 0; `known` and `progress`: see `read_patterns`."""
        items = self._items[len(self._items) * part // parts : len(self._items) * (part + 1) // parts]
        records = _read_items(items, self._file, self._copy_folder, self._is_yaml, known, progress)
        is_last = part == parts - 1
        return PatternPart(
            tuple(records), tuple(self._before) if part == 0 else (), tuple(self._after) if is_last else ()
        )

    def blocks(self, data: bytes, records: Sequence[ReadRecord]) -> PatternBlocks | None:
        """Return the blocks of a file if all its records are patterns of one list, each with its own ID."""
        is_one_list = len({item.path[:-1] for item in self._items}) == 1
        if not (is_one_list and all(map(_is_plain, records))):
            return None
        return PatternBlocks.of(data, [item.node for item in self._items])


def _read_items(
    items: Sequence[PatternItem],
    file: str,
    copy_folder: str,
    is_yaml: bool | None,
    known: Iterable[ReadRecord],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[ReadRecord]:
    earlier = {(one.digest, one.type): one for one in known if one.digest and one.pattern is not None}
    for number, item in enumerate(items):
        if progress is not None and number % _PROGRESS_RECORDS == 0 and number:
            progress(number, len(items))
        is_keyed = isinstance(item.node, Raw) and not item.key
        digest = blake2b(item.node, digest_size=16).digest() if is_keyed else b""
        record = earlier.get((digest, item.type)) if digest else None
        if record is None or record.pattern is None:
            record = ReadRecord(digest, item.type, *_read_item(file, item, copy_folder, is_yaml))
        elif record.pattern.pointer != item.pointer:
            record = _move(record, record.pattern, item.pointer)
        yield record


def _move(record: ReadRecord, pattern: Pattern, pointer: str) -> ReadRecord:
    """Return the same record at another place of the file."""
    moved = (replace(one, pointer=pointer + one.pointer.removeprefix(pattern.pointer)) for one in record.findings)
    return ReadRecord(record.digest, record.type, replace(pattern, pointer=pointer), tuple(moved))


def _read_item(
    file: str, item: PatternItem, copy_folder: str, is_yaml: bool | None
) -> tuple[Pattern | None, tuple[Finding, ...]]:
    """Read one record; with `is_yaml` None, its schema is not checked."""
    if (usual := read_usual_pattern(file, item, copy_folder)) is not None:
        return usual, ()
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
    has_schema = not pattern.is_unnamed and all(finding.code != "unknown-type" for finding in findings)
    if is_yaml is not None and has_schema:
        reported = {finding.pointer for finding in findings}
        key_as_id = {id_key_of(pattern.type): item.key} if id_of(record.mapping, item.key) == item.key else {}
        violations = check({**key_as_id, **record.mapping}, PATTERNS[pattern.type], file, item.pointer, texts=is_yaml)
        findings += (found for found in violations if found.code == MISSING or found.pointer not in reported)
    if record.mapping is not original:
        findings = [replace(one, pointer=respell(one.pointer, original, item.pointer)) for one in findings]
    return pattern, tuple(findings)


def _record(file: str, item: PatternItem, findings: list[Finding]) -> Fields | None:
    """Decode a record; None, with a finding, if it is not an object."""
    value = item.node
    if isinstance(value, Raw):
        decoded = decode_json(bytes(value))
        findings += (Finding(file, item.pointer, one.severity, one.code, one.message) for one in decoded.problems)
        if decoded.failed:
            return None
        value = decoded.value
    if isinstance(value, dict):
        return Fields(file, value, findings, item.pointer)
    message = f"expected a pattern, found {quote_value(value)}"
    findings.append(Finding(file, item.pointer, Severity.ERROR, "wrong-type", message))
    return None


def _check_registry(file: str, top: Mapping[str, Any], is_yaml: bool) -> list[Finding]:
    """Find schema violations in the parts of a pattern file that are not patterns."""
    names = {SNAKE.get(key, key): key for key in top}
    head = {name: snake_keys(decode_node(top[key])) for name, key in names.items() if name in SCHEMAS["registry"].keys}
    violations = check(head, SCHEMAS["registry"], file, texts=is_yaml)
    return [replace(one, pointer=respell(one.pointer, dict.fromkeys(top))) for one in violations]
