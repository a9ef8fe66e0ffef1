"""Read pattern files and archives; docs/file-formats.md#pattern-records.

A file is split into records before any record is decoded, so that a defective record affects only itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import blake2b, sha256
from types import MappingProxyType
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.paths import ProjectPaths, is_folder, is_safe_id
from core.base.scanning.scan import find_pattern_scripts, scan_pattern
from core.base.text import visible_line
from core.files.file_reader import MAX_PATTERN_BYTES, Problem, convert_to_utf8, decode_json, encoding_problem, read_file
from core.files.json_editor import BadJson
from core.records.anchors import COMMIT, list_anchors
from core.records.findings import MISSING, Finding, Severity
from core.records.patterns import (
    UNNAMED,
    IterationRange,
    Pattern,
    PatternCopy,
    PatternType,
    RecordedCounts,
    SourceLoop,
    TrendPoint,
)
from core.records.times import parse_time
from core.sources import normalize
from core.sources.keys import (
    SNAKE,
    Count,
    Entries,
    Keys,
    Names,
    Number,
    Rate,
    RecordText,
    Text,
    Texts,
    Time,
    is_camel,
    pairs,
    read_keys,
    respell,
    snake_keys,
)
from core.sources.normalize import Fields, quote_value
from core.sources.pattern_text import TYPE_WORDS, PatternItem, decode_node, id_of, open_document, records, split_items
from core.sources.schema import MAX_USES, PATTERNS, SCHEMAS, check

_SLUG: Final = re.compile(r"(?:pat-(?:error|success|anti)|tmpl)-([a-z][a-z0-9-]*?)-\d+(?:-[a-z0-9]+)?")
_NAME_KEYS: Final = ("name", "title")
_TEXT_KEYS: Final = {
    PatternType.ERROR: (
        *("error_type", "error_pattern", "error_signature"),
        *("description", "fix_approach", "fix_template"),
    ),
    PatternType.SUCCESS: (
        *("task_category", "task_description_pattern", "description", "approach"),
        *("preconditions", "benefits", "limitations"),
    ),
    PatternType.ANTI: (
        *("approach_description", "description", "failure_mode", "failure_symptoms", "why_it_fails"),
        "better_alternative",
    ),
    PatternType.TEMPLATE: ("description", "use_case", "language", "template_code", "placeholders"),
}
"""Keys that contain the injected text of a pattern."""


def _read_uses(record: Fields, *names: str) -> int | None:
    count = record.count(*names)
    if count is not None and count > MAX_USES:
        record.add("out-of-range", f"{count:,} is not a plausible number of uses; ignored", record.place(names[0]))
        return None
    return count


Uses: TypeAlias = Annotated[Annotated[int, Meta(ge=0, le=MAX_USES)] | None, _read_uses]


class _TrendKeys(Keys):
    timestamp: Time = None
    success_rate_snapshot: Rate = None
    sample_size: Uses = None


class _SourceLoopKeys(Keys):
    loop_id: Text = None
    timestamp: Time = None
    contributed_by: Text = None
    outcome: Any = None
    iteration: Annotated[Count, Names("iterations_required", "failure_iteration")] = msgspec.field(
        default=None, name="iterations_required"
    )
    file: Text = None


def _read_source_loops(record: Fields, name: str) -> list[str | _SourceLoopKeys]:
    loops: list[str | _SourceLoopKeys] = []
    for key, value in record.items(name):
        place = f"{record.place(name)}/{key}"
        if isinstance(value, str):
            loops.append(value)
        elif isinstance(value, dict):
            loops.append(read_keys(_SourceLoopKeys, Fields(record.file, value, record.findings, place)))
        else:
            record.add("wrong-type", f"expected a loop ID or an object, found {quote_value(value)}", place)
    return loops


class _PatternKeys(Keys):
    """Keys of patterns of all types."""

    name: Annotated[Text, Names(*_NAME_KEYS)] = None
    source_loops: Annotated[list[str | _SourceLoopKeys] | None, _read_source_loops] = None
    effectiveness_trend: Entries[_TrendKeys] = None
    tags: Texts = None
    related_patterns: Texts = None
    first_discovered: Time = None
    last_used: Annotated[Time, Names("last_used", "last_seen")] = None
    rate: Annotated[Rate, Names("success_rate")] = msgspec.field(default=None, name="success_rate")
    uses: Annotated[Uses, Names("usage_count", "occurrences")] = msgspec.field(default=None, name="usage_count")
    successful_applications: Uses = None
    failed_applications: Uses = None
    claimed_rate: Rate = None
    inverted_from: Text = None
    aliases: Texts = None
    anchors: Texts = None
    anchor_commit: Text = None
    override: Any = None


class _SignatureKeys(Keys):
    error_type: Text = None
    error_pattern: Text = None
    error_message: Text = None
    error_places: Texts = None
    error_location_hints: Texts = None


class _FixKeys(Keys):
    description: Text = None
    fix_category: Text = None
    code_template: Text = None
    code_template_language: Text = None
    diff_pattern: Text = None


class _ErrorKeys(_PatternKeys):
    description: Text = None
    error_type: Text = None
    error_pattern: Text = None
    fix_template: Text = None
    error_signature: _SignatureKeys | None = None
    fix_approach: _FixKeys | str | None = None


class _RangeKeys(Keys):
    average: Number = None
    minimum: Number = None
    maximum: Number = None


class _ApproachKeys(Keys):
    description: Text = None
    steps: Texts = None
    tools_used: Texts = None
    typical_iterations: _RangeKeys | None = None


class _SuccessKeys(_PatternKeys):
    description: Text = None
    task_category: Text = None
    task_description_pattern: Text = None
    preconditions: Texts = None
    benefits: Texts = None
    limitations: Texts = None
    average_iterations: Number = None
    approach: _ApproachKeys | str | None = None


class _AlternativeKeys(Keys):
    description: Text = None
    success_pattern_id: Text = None


class _AntiKeys(_PatternKeys):
    approach_description: Annotated[Text, Names("approach_description", "description")] = None
    failure_mode: Text = None
    failure_symptoms: Texts = None
    why_it_fails: Text = None
    better_alternative: _AlternativeKeys | str | None = None
    rate: Annotated[Rate, Names("failure_rate")] = msgspec.field(default=None, name="failure_rate")
    uses: Annotated[Uses, Names("occurrence_count")] = msgspec.field(default=None, name="occurrence_count")


def _read_placeholders(record: Fields, name: str) -> dict[str, str] | None:
    inner = record.inside(name)
    return {key: inner.text(key) for key in inner.mapping} if inner is not None else None


def _read_description(record: Fields, name: str) -> str | None:
    text = record.text(name)
    return text if text or isinstance(record.mapping.get(name), str) else None


class _TemplateKeys(_PatternKeys):
    description: Annotated[Text, _read_description] = None  # None, not "", without a description
    use_case: Text = None
    language: Text = None
    template_code: Text = None
    placeholders: Annotated[dict[str, str] | None, _read_placeholders] = None


def read_pattern(record: Fields, item: PatternItem, copy_folder: str) -> Pattern:
    """Convert a record with snake_case keys (`copy_folder`: see `read_patterns`).

    A record without an ID gets a provisional ID made from its text.
    """
    pattern_id = id_of(record.mapping, item.key)
    kind = _type_of(record.mapping, pattern_id, item.type)
    if kind is None:
        kind = PatternType.ERROR
        message = (
            "the pattern type is unknown, so it is shown as an error pattern; "
            "use an ID that starts with pat-error-, pat-success-, pat-anti- or tmpl-"
        )
        record.add("unknown-type", message, item.pointer, Severity.ERROR)
    if not pattern_id:
        message = f"has no {id_key_of(kind)}; it is shown, but never injected or changed"
        record.add("no-id", message, item.pointer, Severity.ERROR)
        content = repr((record.file, text_of(record.mapping, kind))).encode(errors="replace")
        pattern_id = UNNAMED + blake2b(content, digest_size=4).hexdigest()
    elif not is_safe_id(pattern_id):
        record.add("unsafe-id", f"the ID '{visible_line(pattern_id, 60)}' contains invalid characters", item.pointer)
    keys = read_keys(_KEYS[kind], record)
    text = _TEXTS[kind](keys)
    title = make_title(pattern_id, kind, (keys.name or "").strip(), text)
    approach = keys.approach if isinstance(keys, _SuccessKeys) else None
    typical = approach.typical_iterations if isinstance(approach, _ApproachKeys) else None
    return Pattern(
        id=pattern_id,
        type=kind,
        title=title,
        **text,
        typical_iterations=IterationRange(average=typical.average, minimum=typical.minimum, maximum=typical.maximum)
        or None
        if typical is not None
        else None,
        source_loops=tuple(_source_loops(keys.source_loops or ())),
        trend=tuple(
            TrendPoint(at=parse_time(point.timestamp), rate=point.success_rate_snapshot, sample_size=point.sample_size)
            for _, point in pairs(keys.effectiveness_trend)
        ),
        tags=normalize.texts(keys.tags),
        related=normalize.texts(keys.related_patterns),
        first_discovered=parse_time(keys.first_discovered),
        last_used=parse_time(keys.last_used),
        recorded_counts=RecordedCounts(
            rate=keys.rate,
            uses=keys.uses,
            successes=keys.successful_applications,
            failures=keys.failed_applications,
            claimed=keys.claimed_rate,
        ),
        inverted_from=keys.inverted_from or "",
        aliases=normalize.texts(keys.aliases),
        anchors=tuple(one.text for one in list_anchors(keys.anchors or ())),
        anchor_commit=commit if COMMIT.fullmatch(commit := (keys.anchor_commit or "").strip()) else "",
        content_hash=content_hash(kind, title, text),
        file=record.file,
        pointer=item.pointer,
        copy_folder=copy_folder,
        override=normalize.word(keys.override.get("state") if isinstance(keys.override, dict) else keys.override),
        suspicions=scan_pattern(kind, title, text),
        scripts=find_pattern_scripts(title, text),
    )


def read_content_hash(record: Mapping[str, Any], type_of_file: PatternType) -> str:
    """Return the content hash of a record with an ID, without scanning its text."""
    mapping = snake_keys(record)
    pattern_id = id_of(mapping)
    kind = _type_of(mapping, pattern_id, type_of_file) or PatternType.ERROR
    keys = read_keys(_KEYS[kind], Fields("", mapping, []))
    text = _TEXTS[kind](keys)
    return content_hash(kind, make_title(pattern_id, kind, (keys.name or "").strip(), text), text)


def read_record(pattern: Pattern, record: dict[str, Any]) -> Pattern:
    """Convert a decoded record that replaces the record of `pattern`."""
    item = PatternItem((), pattern.pointer, record, pattern.id, pattern.type)
    return read_pattern(Fields(pattern.file, record, [], pattern.pointer), item, pattern.copy_folder)


def text_of(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """Return the keys with the text of a record, without counts, times and origins."""
    return {key: record[key] for key in (*_NAME_KEYS, *_TEXT_KEYS[kind]) if key in record}


def content_hash(kind: PatternType, title: str, text: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of all injected text; a decision is only valid for this hash.

    `text` has the injected fields by name; empty fields may be left out.
    """
    injected = {name: value for name, value in text.items() if value and name != "average_iterations"}
    if injected.get("use_case") == injected.get("description"):
        injected.pop("use_case", None)  # a template without a description uses its use case
    canonical = msgspec.json.encode({"type": kind, "title": title, **injected}, order="sorted")
    return sha256(canonical).hexdigest()


def id_key_of(kind: PatternType) -> str:
    """Return the key that contains the ID of a pattern of this type."""
    return "template_id" if kind is PatternType.TEMPLATE else "pattern_id"


def _type_of(record: Mapping[str, Any], pattern_id: str, suggested: PatternType | None) -> PatternType | None:
    """Return the type from the record, else from its list or file; None if unknown."""
    declared = TYPE_WORDS.get(normalize.word(record["type"]).split("_")[0]) if "type" in record else None
    if "template_id" in record or pattern_id.startswith("tmpl-"):
        return PatternType.TEMPLATE
    if (
        pattern_id.startswith("pat-anti-")
        or declared is PatternType.ANTI
        or not {"failure_rate", "anti_pattern", "is_negative"}.isdisjoint(record)
    ):
        return PatternType.ANTI
    if "task_category" in record or "approach" in record or pattern_id.startswith("pat-success-"):
        return PatternType.SUCCESS
    if "error_signature" in record or pattern_id.startswith("pat-error-"):
        return PatternType.ERROR
    if "template_code" in record:
        return PatternType.TEMPLATE
    if "approach_description" in record:
        return PatternType.ANTI
    return declared or suggested or (PatternType.ERROR if "error_pattern" in record else None)


def _error_text(keys: _ErrorKeys) -> dict[str, Any]:
    text: dict[str, Any] = {
        "error_type": keys.error_type or "",
        "error_pattern": keys.error_pattern or "",
        "template_code": keys.fix_template or "",
    }
    if (signature := keys.error_signature) is not None:
        text["error_type"] = signature.error_type or ""
        text["error_pattern"] = signature.error_pattern or ""
        text["error_message"] = signature.error_message or ""
        text["places"] = normalize.texts(signature.error_places)
        text["location_hints"] = normalize.texts(signature.error_location_hints)
    fix = keys.fix_approach
    text["description"] = _description(fix, keys.description)
    if isinstance(fix, _FixKeys):
        text["category"] = fix.fix_category or ""
        text["template_code"] = fix.code_template or ""
        text["template_language"] = fix.code_template_language or ""
        text["diff_pattern"] = fix.diff_pattern or ""
    return text


def _success_text(keys: _SuccessKeys) -> dict[str, Any]:
    approach = keys.approach
    text: dict[str, Any] = {
        "category": keys.task_category or "",
        "task_pattern": keys.task_description_pattern or "",
        "preconditions": normalize.texts(keys.preconditions),
        "benefits": normalize.texts(keys.benefits),
        "limitations": normalize.texts(keys.limitations),
        "average_iterations": keys.average_iterations,
        "description": _description(approach, keys.description),
    }
    if isinstance(approach, _ApproachKeys):
        text["steps"] = normalize.texts(approach.steps)
        text["tools"] = normalize.texts(approach.tools_used)
        if keys.average_iterations is None and approach.typical_iterations is not None:
            text["average_iterations"] = approach.typical_iterations.average
    return text


def _description(inner: _FixKeys | _ApproachKeys | str | None, outer: str | None) -> str:
    if isinstance(inner, str):
        return inner
    return (outer if inner is None else inner.description) or ""


def _anti_text(keys: _AntiKeys) -> dict[str, Any]:
    text: dict[str, Any] = {
        "description": keys.approach_description or "",
        "category": keys.failure_mode or "",
        "symptoms": normalize.texts(keys.failure_symptoms),
        "why_it_fails": keys.why_it_fails or "",
    }
    better = keys.better_alternative
    if isinstance(better, str):
        text["better_alternative"] = better
    elif better is not None:
        text["better_alternative"] = better.description or ""
        text["better_pattern_id"] = better.success_pattern_id or ""
    return text


def _template_text(keys: _TemplateKeys) -> dict[str, Any]:
    use_case, language = keys.use_case or "", keys.language or ""
    text: dict[str, Any] = {
        "description": use_case if keys.description is None else keys.description,
        "use_case": use_case,
        "category": language,
        "template_code": keys.template_code or "",
        "template_language": language,
    }
    if keys.placeholders is not None:
        text["placeholders"] = tuple(keys.placeholders.items())
    return text


_KEYS: Final[Mapping[PatternType, type[_PatternKeys]]] = {
    PatternType.ERROR: _ErrorKeys,
    PatternType.SUCCESS: _SuccessKeys,
    PatternType.ANTI: _AntiKeys,
    PatternType.TEMPLATE: _TemplateKeys,
}
_TEXTS: Final[Mapping[PatternType, Callable[[Any], dict[str, Any]]]] = {
    PatternType.ERROR: _error_text,
    PatternType.SUCCESS: _success_text,
    PatternType.ANTI: _anti_text,
    PatternType.TEMPLATE: _template_text,
}
"""For each pattern type, the function that returns the injected fields of a record."""


def make_title(pattern_id: str, kind: PatternType, name: str, text: Mapping[str, Any]) -> str:
    """Return a readable title: the record's name, else one from its ID or text."""
    if not name and (message := text.get("error_message")):
        return str(message)
    if not name and (slug := _SLUG.fullmatch(pattern_id)):
        name = slug[1].replace("-", " ")
        name = name if kind is PatternType.ERROR else name[0].upper() + name[1:]
    if not name:
        longest = text.get("error_pattern") or text.get("description") or pattern_id
        name = next(iter(longest.strip().splitlines()), "") or pattern_id
    error_type = text.get("error_type")
    return f"{error_type}: {name}" if error_type and not name.startswith(error_type) else name


def _source_loops(entries: Iterable[str | _SourceLoopKeys]) -> Iterator[SourceLoop]:
    for entry in entries:
        if isinstance(entry, str):
            loop = SourceLoop(loop_id=entry)
        else:
            loop = SourceLoop(
                loop_id=entry.loop_id or "",
                at=parse_time(entry.timestamp),
                contributed_by=entry.contributed_by or "",
                outcome=normalize.word(entry.outcome),
                iteration=entry.iteration,
                file=entry.file or "",
            )
        if loop.loop_id:
            yield loop


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


def duplicate_findings(copies: Sequence[Pattern]) -> tuple[Finding, ...]:
    """Return a finding for each registry record whose ID an earlier record has."""
    registered = [copy for copy in copies if not copy.copy_folder]
    if len(registered) < 2:
        return ()
    first, *others = registered
    message = (
        f"the ID '{visible_line(first.id, 80)}' is also at {first.pointer} of {first.file}, which takes precedence"
    )
    return tuple(Finding(copy.file, copy.pointer, Severity.WARNING, "duplicate-id", message) for copy in others)


def references(pattern: Pattern | None) -> set[str]:
    """Return the IDs of the patterns that a pattern refers to."""
    if pattern is None or not (pattern.related or pattern.better_pattern_id):
        return set()  # as most
    return {*pattern.related, pattern.better_pattern_id} - {""}


def dangling_findings(pattern: Pattern, unknown: Iterable[str]) -> tuple[Finding, ...]:
    """Return a finding for each reference of a pattern to an unknown one."""
    messages = (
        f"refers to '{visible_line(target, 80)}', which is not a pattern of this project" for target in sorted(unknown)
    )
    return tuple(
        Finding(pattern.file, pattern.pointer, Severity.INFO, "orphan-reference", message) for message in messages
    )


def precedence(pattern: Pattern) -> tuple[bool, str, list[tuple[int, str]]]:
    """Sort key: the registry before copies, then by file and position."""
    place = [(int(part), "") if part.isdecimal() else (-1, part) for part in pattern.pointer.split("/")]
    return (bool(pattern.copy_folder), pattern.file, place)


def join_copies(copies: Sequence[Pattern]) -> Pattern | None:
    """Join records with one ID: the first in precedence, with the others as `copies`."""
    if len(copies) < 2:
        return copies[0] if copies else None
    first, *others = sorted(copies, key=precedence)
    copies_of_first = []
    for copy in others:
        moved = replace(copy, file=first.file, pointer=first.pointer, copy_folder=first.copy_folder)
        copies_of_first.append(PatternCopy(file=copy.file, pointer=copy.pointer, differs=moved != first))
    return replace(first, copies=tuple(copies_of_first))
