"""Read the records of patterns that have only the keys and values of their schema, several times faster than others.

A typed decoder rejects every other record, and `core.sources.pattern_record` reads it instead. The patterns are the
same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import UNSET, Raw

from core.config.paths import is_safe_id
from core.records.patterns import IterationRange, Pattern, PatternType, RecordedCounts, SourceLoop, TrendPoint
from core.records.times import parse_time
from core.scanning.pattern_scan import find_pattern_scripts, scan_pattern
from core.sources import normalize
from core.sources.pattern_record import content_hash, make_title
from core.sources.schema import PATTERNS
from core.sources.validation import compile_rule
from core.storage.json_reader import count_quotes

if TYPE_CHECKING:
    from core.sources.pattern_text import PatternItem

_Text = dict[str, Any]
_encoder: Final = msgspec.json.Encoder()


class _Unusual(Exception):
    """A value that only the tolerant reader accepts or reports."""


_UNUSUAL: Final = (_Unusual, msgspec.MsgspecError, ValueError, OverflowError, RecursionError)


@cache
def _decoder(kind: PatternType) -> Any:
    return msgspec.json.Decoder(compile_rule(PATTERNS[kind], is_usual=True))


def read_usual_pattern(file: str, item: PatternItem, copy_folder: str) -> Pattern | None:
    """Return the pattern of an undecoded record; None if it must be read tolerantly. It has no findings."""
    kind, node = item.type, item.node
    if kind is None or item.key or not isinstance(node, Raw):
        return None
    try:
        return _read(file, item, copy_folder, kind, _decode(kind, bytes(node)))
    except _UNUSUAL:
        return None


def usual_hash(data: bytes, kind: PatternType) -> str | None:
    """Return the content hash of a record; None if it must be read tolerantly."""
    try:
        record = _decode(kind, data)
        text = _TEXT_READERS[kind](record)
        return content_hash(kind, make_title(_id_of(kind, record), kind, "", text), text)
    except _UNUSUAL:
        return None


def _decode(kind: PatternType, data: bytes) -> Any:
    record = _decoder(kind).decode(data)
    if count_quotes(_encoder.encode(record)) < count_quotes(data):
        raise _Unusual  # a key occurs twice
    return record


def _id_of(kind: PatternType, record: Any) -> str:
    pattern_id: str = record.template_id if kind is PatternType.TEMPLATE else record.pattern_id
    if not is_safe_id(pattern_id):
        raise _Unusual
    return pattern_id


def _read(file: str, item: PatternItem, copy_folder: str, kind: PatternType, record: Any) -> Pattern:
    """Convert a record; it has no name, and its ID begins as those of its type do."""
    pattern_id = _id_of(kind, record)
    text = _TEXT_READERS[kind](record)
    title = make_title(pattern_id, kind, "", text)
    if kind is PatternType.ANTI:
        rate, uses = record.failure_rate, record.occurrence_count
    else:
        rate, uses = record.success_rate, record.usage_count
    return Pattern(
        id=pattern_id,
        type=kind,
        title=title,
        **text,
        typical_iterations=_typical_iterations(record.approach) if kind is PatternType.SUCCESS else None,
        source_loops=_source_loops(record.source_loops) if record.source_loops else (),
        trend=tuple(map(_trend_point, record.effectiveness_trend)) if record.effectiveness_trend else (),
        tags=_texts(record.tags),
        related=_texts(record.related_patterns),
        first_discovered=_time(record.first_discovered),
        last_used=_time(record.last_used),
        recorded_counts=RecordedCounts(
            rate=_or_none(rate),
            uses=_or_none(uses),
            successes=_or_none(record.successful_applications),
            failures=_or_none(record.failed_applications),
            claimed=_or_none(record.claimed_rate),
        ),
        inverted_from=record.inverted_from or "",
        aliases=_texts(record.aliases),
        content_hash=content_hash(kind, title, text),
        file=file,
        pointer=item.pointer,
        copy_folder=copy_folder,
        suspicions=scan_pattern(kind, title, text),
        scripts=find_pattern_scripts(title, text),
    )


def _error_text(record: Any) -> _Text:
    signature, fix = record.error_signature, record.fix_approach
    return {
        "error_type": signature.error_type,
        "error_pattern": signature.error_pattern,
        "error_message": signature.error_message or "",
        "places": _texts(signature.error_places),
        "template_code": fix.code_template or "",
        "location_hints": _texts(signature.error_location_hints),
        "description": fix.description,
        "category": fix.fix_category,
        "template_language": fix.code_template_language or "",
        "diff_pattern": fix.diff_pattern or "",
    }


def _success_text(record: Any) -> _Text:
    approach, average = record.approach, _or_none(record.average_iterations)
    if average is None and approach.typical_iterations:
        average = _or_none(approach.typical_iterations.average)
    return {
        "category": record.task_category,
        "task_pattern": record.task_description_pattern or "",
        "preconditions": _texts(record.preconditions),
        "benefits": _texts(record.benefits),
        "limitations": _texts(record.limitations),
        "average_iterations": average,
        "description": approach.description,
        "steps": _texts(approach.steps),
        "tools": _texts(approach.tools_used),
    }


def _anti_text(record: Any) -> _Text:
    better = record.better_alternative
    return {
        "description": record.approach_description,
        "category": record.failure_mode,
        "symptoms": _texts(record.failure_symptoms),
        "why_it_fails": record.why_it_fails or "",
        "better_alternative": (better.description or "") if better else "",
        "better_pattern_id": (better.success_pattern_id or "") if better else "",
    }


def _template_text(record: Any) -> _Text:
    use_case = record.use_case or ""
    return {
        "description": record.description if isinstance(record.description, str) else use_case,
        "use_case": use_case,
        "category": record.language,
        "template_code": record.template_code,
        "template_language": record.language,
        "placeholders": tuple(record.placeholders.items()) if record.placeholders else (),
    }


_TEXT_READERS: Final[Mapping[PatternType, Callable[[Any], _Text]]] = {
    PatternType.ERROR: _error_text,
    PatternType.SUCCESS: _success_text,
    PatternType.ANTI: _anti_text,
    PatternType.TEMPLATE: _template_text,
}
"""For each pattern type, the function that returns the injected fields, in the order of the tolerant reader."""


def _typical_iterations(approach: Any) -> IterationRange | None:
    if not (typical := approach.typical_iterations):
        return None
    found = map(_or_none, (typical.average, typical.minimum, typical.maximum))
    return IterationRange(**dict(zip(("average", "minimum", "maximum"), found, strict=True))) or None


def _source_loops(entries: Iterable[Any]) -> tuple[SourceLoop, ...]:
    loops = (
        SourceLoop(loop_id=entry)
        if isinstance(entry, str)
        else SourceLoop(
            loop_id=entry.loop_id or "",
            at=_time(entry.timestamp),
            contributed_by=getattr(entry, "contributed_by", "") or "",
            outcome=normalize.word(getattr(entry, "outcome", "") or ""),
            iteration=_or_none(getattr(entry, "iterations_required", getattr(entry, "failure_iteration", None))),
        )
        for entry in entries
    )
    return tuple(loop for loop in loops if loop.loop_id)


def _trend_point(point: Any) -> TrendPoint:
    rate = _or_none(point.success_rate_snapshot)
    if rate is not None and (rate := normalize.rate(rate)) is None:
        raise _Unusual
    return TrendPoint(at=_time(point.timestamp), rate=rate, sample_size=_or_none(point.sample_size))


def _texts(values: Any) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, values))) if values else ()


def _time(text: Any) -> datetime | None:
    if text is UNSET or text is None:
        return None
    if (time := parse_time(text)) is None:
        raise _Unusual
    return time


def _or_none(value: Any) -> Any:
    return None if value is UNSET else value
