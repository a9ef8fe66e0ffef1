"""The registry as it was: what decisions did to pattern files since then, taken back one by one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from core.curation.merge import as_read
from core.curation.rules import SEEN_TEXT
from core.records.decisions import TURNS, Decision, Effect, Verb
from core.records.patterns import Pattern, PatternType
from core.sources.pattern_record import content_hash

_ARCHIVE: Final = ".aiwg/ralph/shared/archive/"
_TEXT: Final = (
    *("description", "category", "error_type", "error_pattern", "location_hints", "task_pattern", "template_code"),
    *("template_language", "placeholders", "diff_pattern", "steps", "tools", "preconditions", "benefits"),
    *("limitations", "symptoms", "why_it_fails", "better_alternative", "better_pattern_id", "use_case"),
)
"""What `content_hash` covers, of every type, beside the title."""
_OWN: Final = frozenset({"id", "type", "file", "pointer", "copy_folder", "copies", "content_hash"})
"""What a part of a record does not tell."""


@dataclass(frozen=True, slots=True)
class Rewound:
    """The patterns before some decisions.

    Attributes:
        patterns: By id.
        counted_until: Of a pattern whose counts were brought back, until when these count: what came later is not
            among them.
    """

    patterns: dict[str, Pattern]
    counted_until: dict[str, datetime]


def rewound(patterns: Mapping[str, Pattern], later: Iterable[Decision]) -> Rewound:
    """The patterns before some decisions, as far as the ledger tells.

    What a decision put in goes, what it took out comes back whole, what it set is what it was. A text that was
    changed without the ledger is the one that the next decision on it saw; where that did not keep it, only its hash
    is known, so that a verdict given to it binds as it did.

    Args:
        patterns: By id, as they are.
        later: The decisions since then, oldest first.
    """
    found = Rewound(dict(patterns), {})
    for decision in reversed(tuple(later)):
        for effect in decision.inverse:
            if not effect.file.startswith(_ARCHIVE):
                _take_back(found, effect, decision)
        _see(found.patterns, decision)
    return found


def _take_back(found: Rewound, effect: Effect, decision: Decision) -> None:
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
        patterns[id] = _reset(present, effect, next(made, None))
        if patterns[id].recorded_counts != present.recorded_counts:
            patterns[id] = _until(patterns[id], decision.at)
            found.counted_until[id] = decision.at


def _reset(pattern: Pattern, before: Effect, after: Effect | None) -> Pattern:
    """The pattern with what the keys of `before` say where they say something else than those of `after`."""
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
        # Counts that went on since moved the time on; the decision dated those that it made by the last use it saw.
        seen = max((point.at for point in became.trend if point.at), default=None)
        changed["last_used"] = min(filter(None, (seen, pattern.last_used)), default=None)
    pattern = replace(pattern, **changed)
    return replace(pattern, content_hash=_hash(pattern)) if known else pattern


def _until(pattern: Pattern, at: datetime) -> Pattern:
    """The pattern without what its record came to name since a time."""
    return replace(
        pattern,
        source_loops=tuple(one for one in pattern.source_loops if one.at is None or one.at <= at),
        trend=tuple(point for point in pattern.trend if point.at is None or point.at <= at),
    )


def _hash(pattern: Pattern) -> str:
    return content_hash(pattern.type, pattern.title, {name: getattr(pattern, name) for name in _TEXT})


def _keys(effect: Effect) -> dict[str, Any]:
    return {**effect.set, **{key: json.loads(text) for key, text in effect.text.items()}}


def _read(record: Mapping[str, Any], effect: Effect) -> Pattern | None:
    """What a record, or a part of one, says; None where it says nothing that can be used."""
    try:
        found = as_read({**record, "id": effect.pattern_id}, PatternType(effect.type))
    except ValueError:
        return None
    return found if found.id else None


def _see(patterns: dict[str, Pattern], decision: Decision) -> None:
    """A person decided on this text; some decisions keep it."""
    pattern = patterns.get(decision.subject)
    if pattern is None or decision.verb in TURNS:
        return
    after = None if decision.verb is Verb.EDIT else decision.after.get("content_hash")
    seen = decision.before.get("content_hash") or after
    if not isinstance(seen, str) or seen in ("", pattern.content_hash):
        return
    kept = decision.after.get(SEEN_TEXT)
    told = as_read({**kept, "id": pattern.id}, pattern.type) if isinstance(kept, dict) else None
    text = {name: getattr(told, name) for name in ("title", *_TEXT)} if told and told.content_hash == seen else {}
    patterns[pattern.id] = replace(pattern, **text, content_hash=seen)
