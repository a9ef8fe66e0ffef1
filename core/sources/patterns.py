"""Pattern files in every shape that occurs, to `Pattern` records; see docs/file-formats.md#pattern-files.

A file is taken apart record by record before a record is looked at, so that a bad one costs only itself.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b, sha256
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from core.base.text import visible_line
from core.config.paths import SAFE_ID
from core.records.findings import MISSING, Finding, Severity
from core.records.patterns import UNNAMED, IterationRange, Pattern, PatternType, RecordedCounts, SourceLoop, TrendPoint
from core.scanning.pattern_scan import scan_pattern
from core.sources.fields import Fields, shown
from core.sources.key_style import SNAKE, is_camel, respell, snake_keys
from core.sources.normalize import word
from core.sources.pattern_shapes import ID_KEYS, LISTS, is_entry, layout, snaked
from core.sources.schema import CLAIMED_RATE, PATTERNS
from core.sources.schema import REGISTRY as REGISTRY_SCHEMA
from core.sources.validation import check
from core.storage.decoded import Decoded, Problem, encoding_problem
from core.storage.encodings import as_utf8
from core.storage.file_reader import decode
from core.storage.json_reader import decode_json, decode_jsonl

MAX_USES: Final = 10**9
"""Counts beyond this are no counts of uses."""

_FIRST_WORDS: Final = {
    "error": PatternType.ERROR,
    "success": PatternType.SUCCESS,
    "anti": PatternType.ANTI,
    "antipattern": PatternType.ANTI,
    "template": PatternType.TEMPLATE,
    "code": PatternType.TEMPLATE,
}
"""First word of a `type` value or a file name."""
_SLUG: Final = re.compile(r"(?:pat-(?:error|success|anti)|tmpl)-([a-z][a-z0-9-]*?)-\d+(?:-[a-z0-9]+)?")
_FOUR_TYPES: Final = "pat-error-, pat-success-, pat-anti-, tmpl-"

_opener: Final = msgspec.json.Decoder(dict[str, Raw] | list[Raw])


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
"""The keys of a record that the text of a pattern, what would be injected, is read from."""

_PROGRESS_RECORDS: Final = 200
"""CachedPatterns of a file between two reports of progress."""

CachedPatterns = dict[tuple[bytes, PatternType | None], tuple[Pattern, tuple[Finding, ...]]]
"""Patterns and their findings by the digest of their bytes and the type that their place suggests."""


class PatternFile(Struct, frozen=True):
    """What one pattern file says.

    Attributes:
        patterns: In the order of the file.
        findings: What is wrong with it.
        problem: Why it could not be read at all; None where it was.
    """

    patterns: tuple[Pattern, ...] = ()
    findings: tuple[Finding, ...] = ()
    problem: Problem | None = None


class _Item(Struct, frozen=True, gc=False):
    """One record before it is looked at.

    Attributes:
        pointer: Where it stands in the file.
        node: Its undecoded bytes or its decoded value.
        key: Its key, where records are keyed by id.
        type: What its list is for, or the file; None where neither says.
    """

    pointer: str
    node: Any
    key: str = ""
    type: PatternType | None = None


def read_patterns(
    file: str,
    data: bytes,
    copy_folder: str = "",
    known: CachedPatterns | None = None,
    *,
    with_schema: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> PatternFile:
    """All patterns of a pattern file.

    Args:
        file: Project-relative name; it classifies records that do not name their type themselves.
        data: JSON, JSONL or YAML, in UTF-8 or another encoding that is certain.
        mirror_of: For a file outside `shared/patterns` its folder. Such a file may hold other things too, so an object
            without an ID is skipped there without a finding.
        known: CachedPatterns of this file as it was before, brought up to date here: what did not change is not read
            again, which makes one changed record in a file of 10,000 five times as fast.
        with_schema: Whether to report what the schema does not allow.
        progress: Called now and then with the records that are read, and the records in all.
    """
    data, encoding = as_utf8(data)
    top = _top(file, data)
    if top.failed:
        return PatternFile(problem=top.problems[0])
    texts = file.endswith((".yaml", ".yml"))
    findings = [problem.finding(file) for problem in top.problems]
    if encoding:
        findings.append(encoding_problem(encoding).finding(file))
    patterns: list[Pattern] = []
    records: CachedPatterns = {}
    unnamed: Counter[str] = Counter()
    by_name = _FIRST_WORDS.get(re.split(r"[-_.]", file.rpartition("/")[2])[0])
    shape: list[Finding] = []
    items = list(_items(top.value, by_name, file, shape))
    for number, item in enumerate(items):
        if progress is not None and number % _PROGRESS_RECORDS == 0 and number:
            progress(number, len(items))
        key = (blake2b(item.node, digest_size=16).digest(), item.type) if isinstance(item.node, Raw) else None
        pattern, wrong = (known.get(key) if known and key else None) or (None, ())
        if pattern is not None and pattern.pointer != item.pointer:
            wrong = tuple(_moved(finding, pattern.pointer, item.pointer) for finding in wrong)
            pattern = replace(pattern, pointer=item.pointer)
        if pattern is None:
            pattern, wrong = _read(file, item, copy_folder, texts if with_schema else None)
        findings += wrong
        if pattern is None:
            continue
        if key and not item.key:
            records[key] = pattern, wrong
        if pattern.is_unnamed:
            unnamed[pattern.id] += 1
            if unnamed[pattern.id] > 1:
                pattern = replace(pattern, id=f"{pattern.id}-{unnamed[pattern.id]}")
        patterns.append(pattern)
    if known is not None:
        known.clear()
        known.update(records)
    if not copy_folder:
        findings += shape
    if with_schema and isinstance(top.value, dict):
        findings += _check_registry(file, top.value, texts)
    return PatternFile(tuple(patterns), tuple(findings))


def _read(file: str, item: _Item, copy_folder: str, texts: bool | None) -> tuple[Pattern | None, tuple[Finding, ...]]:
    """The pattern of one record, and what is wrong with it; `texts` is None where no schema is checked."""
    findings: list[Finding] = []
    record = _record(file, item, findings)
    if record is None or (copy_folder and _is_no_copy(record.mapping, item)):
        return None, tuple(findings)
    original = record.mapping
    if is_camel(original):
        record = Fields(file, snake_keys(original), findings, item.pointer)
    pattern = _pattern(record, item, copy_folder)
    named = {finding.pointer for finding in findings}
    is_known = not pattern.is_unnamed and all(finding.code != "unknown-type" for finding in findings)
    if texts is not None and is_known:  # without an ID or a type, no schema applies
        named_by_key = {} if _id_of(record.mapping, item) != item.key else {_id_key(pattern): item.key}
        violations = check({**named_by_key, **record.mapping}, PATTERNS[pattern.type], file, item.pointer, texts=texts)
        findings += (finding for finding in violations if finding.code == MISSING or finding.pointer not in named)
    if record.mapping is not original:
        findings = [
            Finding(file, respell(one.pointer, original, item.pointer), one.severity, one.code, one.message)
            for one in findings
        ]
    return pattern, tuple(findings)


def _id_key(pattern: Pattern) -> str:
    """The key that the schema wants the ID of a pattern under."""
    return "template_id" if pattern.type is PatternType.TEMPLATE else "pattern_id"


def _moved(finding: Finding, before: str, after: str) -> Finding:
    """A finding of a record whose place in the file changed."""
    pointer = after + finding.pointer.removeprefix(before)
    return Finding(finding.file, pointer, finding.severity, finding.code, finding.message)


def _check_registry(file: str, top: Mapping[str, Any], texts: bool) -> list[Finding]:
    """What the schema does not allow in a pattern file, its patterns apart."""
    names = {SNAKE.get(key, key): key for key in top}
    head = {name: snake_keys(_value(top[key])) for name, key in names.items() if name in REGISTRY_SCHEMA.keys}
    found = check(head, REGISTRY_SCHEMA, file, texts=texts)
    return [
        Finding(file, respell(one.pointer, dict.fromkeys(top)), one.severity, one.code, one.message) for one in found
    ]


def read_record(pattern: Pattern, record: dict[str, Any]) -> Pattern:
    """The pattern of a record that is decoded already and known to be of this pattern."""
    item = _Item(pattern.pointer, record, pattern.id, pattern.type)
    return _pattern(Fields(pattern.file, record, [], pattern.pointer), item, pattern.copy_folder)


def text_of(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """The keys of a record that hold its text; what else it has are counts, times and where it comes from."""
    return {key: record[key] for key in (*_NAME_KEYS, *_TEXT_KEYS[kind]) if key in record}


def _is_no_copy(record: Mapping[str, Any], item: _Item) -> bool:
    """Whether a record outside the registry is something else than a copy of a pattern: an index only points to one."""
    return not _id_of(record, item) or {"content_hash", "file"} <= record.keys()


def _top(file: str, data: bytes) -> Decoded:
    """The document with its records still undecoded where it is plain JSON."""
    if file.endswith(".jsonl"):
        return _lines(data)
    if file.endswith((".yaml", ".yml")):
        return decode(file, data)
    try:
        return Decoded(_opener.decode(data.removeprefix(b"\xef\xbb\xbf")))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return _lines(data) if _is_jsonl(data) else decode_json(data)


def _is_jsonl(data: bytes) -> bool:
    """Whether the first line is a whole object by itself and another line follows."""
    first, feed, rest = data.strip().partition(b"\n")
    if not feed or not rest:
        return False
    decoded = decode_json(first)
    return not decoded.failed and isinstance(decoded.value, dict)


def _lines(data: bytes) -> Decoded:
    lines, problems = decode_jsonl(data)
    return Decoded([line.value for line in lines], problems)


def _open(node: Any) -> Any:
    """A node one level deep: a dict or list of nodes, or what else it is."""
    if not isinstance(node, Raw):
        return node
    try:
        return _opener.decode(node)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return decode_json(bytes(node)).value


def _items(
    top: Any, by_name: PatternType | None, file: str, findings: list[Finding], pointer: str = ""
) -> Iterator[_Item]:
    """The records of a document, whichever shape it has; what is in no known shape becomes a finding."""

    def report(message: str, place: str = pointer, severity: Severity = Severity.WARNING) -> None:
        findings.append(Finding(file, place, severity, "no-patterns", message))

    if isinstance(top, list):
        yield from _list(top, by_name, pointer)
        return
    if not isinstance(top, dict):
        report(f"expected patterns, found {shown(top)}")
        return
    here = Fields("", {}, [], pointer)
    values = snaked(top)
    names = dict(zip(values, top, strict=True))
    found = layout(values, _open)
    for key in found.keys:
        place = here.place(names[key])
        if found.form == "step":
            yield from _items(_open(values[key]), by_name, file, findings, place)
        else:
            nodes = _open(values[key])
            if isinstance(nodes, list | dict):
                yield from _list(nodes, LISTS.get(key) or _FIRST_WORDS.get(_first_word(key), by_name), place)
            elif nodes is not None:
                report(f"expected a list of patterns, found {shown(nodes)}", place)
    for key in found.unknown:
        report("is not a key of a pattern file; the patterns in it are read", here.place(names[key]), Severity.INFO)
    if found.form == "pattern":
        yield _Item(pointer, {key: _value(node) for key, node in top.items()}, type=by_name)
    elif found.form == "entries":
        yield from _list(top, by_name, pointer)
    elif found.form == "none" and not (pointer and not top):
        keys = ", ".join(visible_line(key, 40) for key in list(top)[:5])
        report(f"is an object without patterns{f'; it has {keys}' if keys else ''}")


def _first_word(key: str) -> str:
    return key.split("_")[0].removesuffix("s")


def _value(node: Any) -> Any:
    """A node wholly decoded."""
    return decode_json(bytes(node)).value if isinstance(node, Raw) else node


def _list(nodes: Any, of_type: PatternType | None, pointer: str) -> Iterator[_Item]:
    """The records of a list, or of an object keyed by id."""
    if isinstance(nodes, list):
        for index, node in enumerate(nodes):
            yield _Item(f"{pointer}/{index}", node, type=of_type)
    elif isinstance(nodes, dict):
        here = Fields("", nodes, [], pointer)
        for key, node in nodes.items():
            if is_entry(key, _open(node)):
                yield _Item(here.place(key), node, key, of_type)


def _record(file: str, item: _Item, findings: list[Finding]) -> Fields | None:
    value = item.node
    if isinstance(value, Raw):
        decoded = decode_json(bytes(value))
        findings += (Finding(file, item.pointer, p.severity, p.code, p.message) for p in decoded.problems)
        if decoded.failed:
            return None
        value = decoded.value
    if isinstance(value, dict):
        return Fields(file, value, findings, item.pointer)
    message = f"expected a pattern, found {shown(value)}"
    findings.append(Finding(file, item.pointer, Severity.ERROR, "wrong-type", message))
    return None


def _id_of(record: Mapping[str, Any], item: _Item) -> str:
    for key in ID_KEYS:
        value = record.get(key)
        if isinstance(value, str) and value.strip():
            return value
    return item.key


def _type_of(record: Mapping[str, Any], identifier: str, item: _Item) -> PatternType | None:
    """By the item itself, its list and file last (C1)."""
    said = _FIRST_WORDS.get(word(record.get("type")).split("_")[0])
    if "template_id" in record or identifier.startswith("tmpl-"):
        return PatternType.TEMPLATE
    if (
        identifier.startswith("pat-anti-")
        or said is PatternType.ANTI
        or not {"failure_rate", "anti_pattern", "is_negative"}.isdisjoint(record)
    ):
        return PatternType.ANTI
    if "task_category" in record or "approach" in record or identifier.startswith("pat-success-"):
        return PatternType.SUCCESS
    if "error_signature" in record or identifier.startswith("pat-error-"):
        return PatternType.ERROR
    if "template_code" in record:
        return PatternType.TEMPLATE
    if "approach_description" in record:
        return PatternType.ANTI
    return said or item.type or (PatternType.ERROR if "error_pattern" in record else None)


def _pattern(record: Fields, item: _Item, copy_folder: str) -> Pattern:
    """The pattern of one record; one without an ID gets a provisional one, made from its text."""
    identifier = _id_of(record.mapping, item)
    kind = _type_of(record.mapping, identifier, item)
    if kind is None:
        kind = PatternType.ERROR
        message = f"its type is unknown, shown as an error pattern; expected an ID like {_FOUR_TYPES}"
        record.add("unknown-type", message, item.pointer, Severity.ERROR)
    if not identifier:
        key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
        record.add("no-id", f"has no {key}; shown, but never injected or changed", item.pointer, Severity.ERROR)
        content = repr((record.file, text_of(record.mapping, kind))).encode(errors="replace")
        identifier = UNNAMED + blake2b(content, digest_size=4).hexdigest()
    elif not SAFE_ID.fullmatch(identifier) or ".." in identifier:
        message = f"id '{visible_line(identifier, 60)}' holds characters that ids do not have"
        record.add("unsafe-id", message, item.pointer)
    text = _TEXTS[kind](record)
    title = _title(identifier, kind, record, text)
    override = record.mapping.get("override")
    return Pattern(
        id=identifier,
        type=kind,
        title=title,
        **text,
        typical_iterations=_typical_iterations(record) if kind is PatternType.SUCCESS else None,
        source_loops=_source_loops(record),
        trend=_trend(record),
        tags=record.texts("tags"),
        related=record.texts("related_patterns"),
        first_discovered=record.time("first_discovered"),
        last_used=record.time("last_used", "last_seen"),
        recorded_counts=_claim(record, kind),
        inverted_from=record.text("inverted_from"),
        aliases=record.texts("aliases"),
        content_hash=content_hash(kind, title, text),
        file=record.file,
        pointer=item.pointer,
        copy_folder=copy_folder,
        override=word(override.get("state")) if isinstance(override, dict) else word(override),
        suspicions=scan_pattern(kind, title, text),
    )


def content_hash(kind: PatternType, title: str, text: Mapping[str, Any]) -> str:
    """sha256 hex of what would be injected; human decisions bind to it.

    Args:
        kind: The pattern's type.
        title: Its title.
        text: Its injected fields by name; fields that are empty may be left out.
    """
    injected = {name: value for name, value in text.items() if value and name != "average_iterations"}
    if injected.get("use_case") == injected.get("description"):
        injected.pop("use_case", None)  # the description of a template that has only a use case
    canonical = msgspec.json.encode({"type": kind, "title": title, **injected}, order="sorted")
    return sha256(canonical).hexdigest()


def _error_text(record: Fields) -> dict[str, Any]:
    text: dict[str, Any] = {
        "error_type": record.text("error_type"),
        "error_pattern": record.text("error_pattern"),
        "template_code": record.text("fix_template"),
    }
    if signature := record.inside("error_signature"):
        text["error_type"] = signature.text("error_type")
        text["error_pattern"] = signature.text("error_pattern")
        text["location_hints"] = signature.texts("error_location_hints")
    if fix := _described(record, "fix_approach", text):
        text["category"] = fix.text("fix_category")
        text["template_code"] = fix.text("code_template")
        text["template_language"] = fix.text("code_template_language")
        text["diff_pattern"] = fix.text("diff_pattern")
    return text


def _success_text(record: Fields) -> dict[str, Any]:
    text: dict[str, Any] = {
        "category": record.text("task_category"),
        "task_pattern": record.text("task_description_pattern"),
        "preconditions": record.texts("preconditions"),
        "benefits": record.texts("benefits"),
        "limitations": record.texts("limitations"),
        "average_iterations": record.number("average_iterations"),
    }
    if approach := _described(record, "approach", text):
        text["steps"] = approach.texts("steps")
        text["tools"] = approach.texts("tools_used")
        typical = approach.inside("typical_iterations")
        if typical and text["average_iterations"] is None:
            text["average_iterations"] = typical.number("average")
    return text


def _typical_iterations(record: Fields) -> IterationRange | None:
    approach = record.mapping.get("approach")
    typical = approach.get("typical_iterations") if isinstance(approach, dict) else None
    if not isinstance(typical, dict):
        return None
    fields = Fields(record.file, typical, record.findings, f"{record.place('approach')}/typical_iterations")
    found = IterationRange(
        average=fields.number("average"), minimum=fields.number("minimum"), maximum=fields.number("maximum")
    )
    return found if found else None


def _anti_text(record: Fields) -> dict[str, Any]:
    text: dict[str, Any] = {
        "description": record.text("approach_description", "description"),
        "category": record.text("failure_mode"),
        "symptoms": record.texts("failure_symptoms"),
        "why_it_fails": record.text("why_it_fails"),
    }
    alternative = record.mapping.get("better_alternative")
    if isinstance(alternative, str):
        text["better_alternative"] = alternative
    elif better := record.inside("better_alternative"):
        text["better_alternative"] = better.text("description")
        text["better_pattern_id"] = better.text("success_pattern_id")
    return text


def _template_text(record: Fields) -> dict[str, Any]:
    text: dict[str, Any] = {
        "description": record.text("description", "use_case"),
        "use_case": record.text("use_case"),
        "category": record.text("language"),
        "template_code": record.text("template_code"),
        "template_language": record.text("language"),
    }
    if placeholders := record.inside("placeholders"):
        text["placeholders"] = tuple((name, placeholders.text(name)) for name in placeholders.mapping)
    return text


_TEXTS: Final = {
    PatternType.ERROR: _error_text,
    PatternType.SUCCESS: _success_text,
    PatternType.ANTI: _anti_text,
    PatternType.TEMPLATE: _template_text,
}


def _described(record: Fields, name: str, text: dict[str, Any]) -> Fields | None:
    """The object at `name`, its description put into `text`; agents write just the description as well."""
    value = record.mapping.get(name)
    if isinstance(value, str):
        text["description"] = value
        return None
    inner = record.inside(name)
    text["description"] = inner.text("description") if inner else record.text("description")
    return inner


def _title(identifier: str, kind: PatternType, record: Fields, text: Mapping[str, Any]) -> str:
    """A name for people: what the file calls it, else the words of its id as (0) does, else its text."""
    name = record.text("name", "title").strip()
    if not name and (slug := _SLUG.fullmatch(identifier)):
        name = slug[1].replace("-", " ")
        name = name if kind is PatternType.ERROR else name[0].upper() + name[1:]
    if not name:
        told = text.get("error_pattern") or text.get("description") or identifier
        name = next(iter(told.strip().splitlines()), "") or identifier
    error_type = text.get("error_type")
    return f"{error_type}: {name}" if error_type and not name.startswith(error_type) else name


def _source_loops(record: Fields) -> tuple[SourceLoop, ...]:
    """`source_loops` of objects (3) or of plain ids (0, and templates)."""
    loops = []
    for key, value in record.items("source_loops"):
        if isinstance(value, str):
            loops.append(SourceLoop(loop_id=value))
        elif isinstance(value, dict):
            entry = Fields(record.file, value, record.findings, f"{record.place('source_loops')}/{key}")
            loops.append(
                SourceLoop(
                    loop_id=entry.text("loop_id"),
                    at=entry.time("timestamp"),
                    contributed_by=entry.text("contributed_by"),
                    outcome=word(value.get("outcome")),
                    iteration=entry.count("iterations_required", "failure_iteration"),
                )
            )
        else:
            message = f"expected a loop, found {shown(value)}"
            record.add("wrong-type", message, f"{record.place('source_loops')}/{key}")
    return tuple(loop for loop in loops if loop.loop_id)


def _trend(record: Fields) -> tuple[TrendPoint, ...]:
    return tuple(
        TrendPoint(
            at=point.time("timestamp"),
            rate=point.rate("success_rate_snapshot"),
            sample_size=_uses(point, "sample_size"),
        )
        for _, point in record.objects("effectiveness_trend")
    )


def _claim(record: Fields, kind: PatternType) -> RecordedCounts:
    """What the file says of rate and counts (C21); for an anti-pattern failure confirms it."""
    if kind is PatternType.ANTI:
        rate, uses = record.rate("failure_rate"), _uses(record, "occurrence_count")
    else:
        rate, uses = record.rate("success_rate"), _uses(record, "usage_count", "occurrences")
    return RecordedCounts(
        rate=rate,
        uses=uses,
        successes=_uses(record, "successful_applications"),
        failures=_uses(record, "failed_applications"),
        claimed=record.rate(CLAIMED_RATE),
    )


def _uses(record: Fields, *names: str) -> int | None:
    found = record.count(*names)
    if found is not None and found > MAX_USES:
        record.add("out-of-range", f"a count of {found:,} is no count of uses; not used", record.place(names[0]))
        return None
    return found
