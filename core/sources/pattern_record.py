"""Convert one record to a `Pattern` (docs/file-formats.md#pattern-records)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from hashlib import blake2b, sha256
from typing import Any, Final

import msgspec

from core.base.text import visible_line
from core.config.paths import is_safe_id
from core.records.findings import Severity
from core.records.patterns import UNNAMED, IterationRange, Pattern, PatternType, RecordedCounts, SourceLoop, TrendPoint
from core.scanning.pattern_scan import find_pattern_scripts, scan_pattern
from core.sources.fields import Fields, quote_value
from core.sources.normalize import word
from core.sources.pattern_text import TYPE_WORDS, PatternItem, id_of
from core.sources.schema import CLAIMED_RATE, MAX_USES

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


def read_pattern(record: Fields, item: PatternItem, copy_folder: str) -> Pattern:
    """Convert a record with snake_case keys (`copy_folder`: see `read_patterns`).

    A record without an ID gets a provisional ID made from its text.
    """
    pattern_id = id_of(record.mapping, item.key)
    kind = _type_of(record.mapping, pattern_id, item)
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
    text = _TEXT_READERS[kind](record)
    title = make_title(pattern_id, kind, record.text(*_NAME_KEYS).strip(), text)
    override = record.mapping.get("override")
    return Pattern(
        id=pattern_id,
        type=kind,
        title=title,
        **text,
        typical_iterations=_typical_iterations(record) if kind is PatternType.SUCCESS else None,
        source_loops=_source_loops(record),
        trend=tuple(
            TrendPoint(
                at=point.time("timestamp"),
                rate=point.rate("success_rate_snapshot"),
                sample_size=_uses(point, "sample_size"),
            )
            for _, point in record.objects("effectiveness_trend")
        ),
        tags=record.texts("tags"),
        related=record.texts("related_patterns"),
        first_discovered=record.time("first_discovered"),
        last_used=record.time("last_used", "last_seen"),
        recorded_counts=_recorded_counts(record, kind),
        inverted_from=record.text("inverted_from"),
        aliases=record.texts("aliases"),
        content_hash=content_hash(kind, title, text),
        file=record.file,
        pointer=item.pointer,
        copy_folder=copy_folder,
        override=word(override.get("state")) if isinstance(override, dict) else word(override),
        suspicions=scan_pattern(kind, title, text),
        scripts=find_pattern_scripts(title, text),
    )


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


def _type_of(record: Mapping[str, Any], pattern_id: str, item: PatternItem) -> PatternType | None:
    """Return the type from the record, else from its list or file; None if unknown."""
    declared = TYPE_WORDS.get(word(record.get("type")).split("_")[0])
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
    return declared or item.type or (PatternType.ERROR if "error_pattern" in record else None)


def _error_text(record: Fields) -> dict[str, Any]:
    text: dict[str, Any] = {
        "error_type": record.text("error_type"),
        "error_pattern": record.text("error_pattern"),
        "template_code": record.text("fix_template"),
    }
    if signature := record.inside("error_signature"):
        text["error_type"] = signature.text("error_type")
        text["error_pattern"] = signature.text("error_pattern")
        text["error_message"] = signature.text("error_message")
        text["places"] = signature.texts("error_places")
        text["location_hints"] = signature.texts("error_location_hints")
    if fix := _read_described(record, "fix_approach", text):
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
    if approach := _read_described(record, "approach", text):
        text["steps"] = approach.texts("steps")
        text["tools"] = approach.texts("tools_used")
        typical = approach.inside("typical_iterations")
        if typical and text["average_iterations"] is None:
            text["average_iterations"] = typical.number("average")
    return text


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


_TEXT_READERS: Final[Mapping[PatternType, Callable[[Fields], dict[str, Any]]]] = {
    PatternType.ERROR: _error_text,
    PatternType.SUCCESS: _success_text,
    PatternType.ANTI: _anti_text,
    PatternType.TEMPLATE: _template_text,
}
"""For each pattern type, the function that reads the injected fields of a record."""


def _read_described(record: Fields, name: str, text: dict[str, Any]) -> Fields | None:
    """Return the object at `name`, None for a plain text; sets `text["description"]`."""
    if isinstance(value := record.mapping.get(name), str):
        text["description"] = value
        return None
    inner = record.inside(name)
    text["description"] = inner.text("description") if inner else record.text("description")
    return inner


def make_title(pattern_id: str, kind: PatternType, name: str, text: Mapping[str, Any]) -> str:
    """Return a readable title: the name in the record, or one from its ID or text if that is empty."""
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


def _typical_iterations(record: Fields) -> IterationRange | None:
    approach = record.mapping.get("approach")
    typical = approach.get("typical_iterations") if isinstance(approach, dict) else None
    if not isinstance(typical, dict):
        return None
    fields = Fields(record.file, typical, record.findings, f"{record.place('approach')}/typical_iterations")
    return fields.convert(IterationRange) or None


def _source_loops(record: Fields) -> tuple[SourceLoop, ...]:
    loops = []
    for key, value in record.items("source_loops"):
        place = f"{record.place('source_loops')}/{key}"
        if isinstance(value, str):
            loops.append(SourceLoop(loop_id=value))
        elif isinstance(value, dict):
            entry = Fields(record.file, value, record.findings, place)
            loops.append(
                SourceLoop(
                    loop_id=entry.text("loop_id"),
                    at=entry.time("timestamp"),
                    contributed_by=entry.text("contributed_by"),
                    outcome=word(value.get("outcome")),
                    iteration=entry.count("iterations_required", "failure_iteration"),
                    file=entry.text("file"),
                )
            )
        else:
            record.add("wrong-type", f"expected a loop ID or an object, found {quote_value(value)}", place)
    return tuple(loop for loop in loops if loop.loop_id)


def _recorded_counts(record: Fields, kind: PatternType) -> RecordedCounts:
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
    count = record.count(*names)
    if count is not None and count > MAX_USES:
        record.add("out-of-range", f"{count:,} is not a plausible number of uses; ignored", record.place(names[0]))
        return None
    return count
