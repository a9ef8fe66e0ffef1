"""Compute past patterns by reverting the effects of later decisions on pattern files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.curation.case import DECIDED_TEXT
from core.curation.merge import as_read
from core.records.decisions import TURNS, Decision, Effect, Verb
from core.records.patterns import Pattern, PatternType
from core.sources.pattern_record import content_hash

_ARCHIVE: Final = ".aiwg/ralph/shared/archive/"
_TEXT: Final = (
    *(
        "description",
        "category",
        "error_type",
        "error_pattern",
        "error_message",
        "places",
        "location_hints",
        "task_pattern",
        "template_code",
    ),
    *("template_language", "placeholders", "diff_pattern", "steps", "tools", "preconditions", "benefits"),
    *("limitations", "symptoms", "why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
)  # fields of all pattern types, besides the title, that `content_hash` covers
_OWN: Final = frozenset({"id", "type", "file", "pointer", "copy_folder", "copies", "content_hash"})
"""Fields that identify or locate a record; they are not part of its changed values."""


class RewoundPatterns(Struct, frozen=True):
    """Patterns with the values that they had before some decisions."""

    patterns: dict[str, Pattern]
    counted_until: dict[str, datetime]  # time up to which restored counts include uses, by pattern ID


def rewind_patterns(patterns: Mapping[str, Pattern], later: Iterable[Decision]) -> RewoundPatterns:
    """Revert decisions (sorted oldest first), as far as the decision log allows.

    Removes inserted records, restores removed records, and resets changed keys. If a text was edited without a
    decision, the text that the next decision stored is restored. If that decision stored only the hash of the text,
    the hash is restored, so that a pinned state of that time applies.
    """
    found = RewoundPatterns(dict(patterns), {})
    for decision in reversed(tuple(later)):
        for effect in decision.inverse:
            if not effect.file.startswith(_ARCHIVE):
                _revert(found, effect, decision)
        _restore_text(found.patterns, decision)
    return found


def _revert(found: RewoundPatterns, effect: Effect, decision: Decision) -> None:
    patterns, id = found.patterns, effect.pattern_id
    present = patterns.get(id)
    if effect.remove:
        patterns.pop(id, None)
    elif effect.insert is not None:
        if present is None and (pattern := _read(effect.insert, effect)) is not None:
            patterns[id] = replace(pattern, id=id, file=effect.file)
            found.counted_until[id] = decision.at
    elif present is not None:
        made = (one for one in decision.effects if (one.file, one.pattern_id) == (effect.file, id))
        past = _reset(present, effect, next(made, None))
        if past.recorded_counts != present.recorded_counts:
            sources = tuple(one for one in past.source_loops if one.at is None or one.at <= decision.at)
            trend = tuple(point for point in past.trend if point.at is None or point.at <= decision.at)
            past = replace(past, source_loops=sources, trend=trend)
            found.counted_until[id] = decision.at
        patterns[id] = past


def _reset(pattern: Pattern, before: Effect, after: Effect | None) -> Pattern:
    """Return the pattern with the values of `before` that differ from `after`."""
    was, became = _read(_keys(before), before), _read(_keys(after) if after else {}, before)
    if was is None or became is None:
        return pattern
    changed = {
        name: getattr(was, name)
        for name in Pattern.__struct_fields__
        if name not in _OWN and getattr(was, name) != getattr(became, name)
    }
    if not changed:
        return pattern
    known = pattern.content_hash == _hash(pattern)
    if "recorded_counts" in changed and "last_used" not in changed:
        # Later uses changed `last_used`; the decision dated the counts by the last use in the trend.
        last = max((point.at for point in became.trend if point.at), default=None)
        changed["last_used"] = min(filter(None, (last, pattern.last_used)), default=None)
    pattern = replace(pattern, **changed)
    return replace(pattern, content_hash=_hash(pattern)) if known else pattern


def _hash(pattern: Pattern) -> str:
    return content_hash(pattern.type, pattern.title, {name: getattr(pattern, name) for name in _TEXT})


def _keys(effect: Effect) -> dict[str, Any]:
    return {**effect.set, **{key: json.loads(text) for key, text in effect.text.items()}}


def _read(record: Mapping[str, Any], effect: Effect) -> Pattern | None:
    """Parse a record or a part of a record; return None if it is not valid."""
    try:
        found = as_read({**record, "id": effect.pattern_id}, PatternType(effect.type))
    except ValueError:
        return None
    return found if found.id else None


def _restore_text(patterns: dict[str, Pattern], decision: Decision) -> None:
    """Restore the text that the decision was about, or its hash if it was not stored."""
    pattern = patterns.get(decision.subject)
    if pattern is None or decision.verb in TURNS:
        return
    after = None if decision.verb is Verb.EDIT else decision.after.get("content_hash")
    digest = decision.before.get("content_hash") or after
    if not isinstance(digest, str) or digest in ("", pattern.content_hash):
        return
    stored = decision.after.get(DECIDED_TEXT)
    past = as_read({**stored, "id": pattern.id}, pattern.type) if isinstance(stored, dict) else None
    text = {name: getattr(past, name) for name in ("title", *_TEXT)} if past and past.content_hash == digest else {}
    patterns[pattern.id] = replace(pattern, **text, content_hash=digest)
