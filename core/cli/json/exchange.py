"""What pruning, the archive, duplicates and the exchange of patterns print as JSON; see `core.cli.json.shapes`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.cli.json.shapes import Shape, number
from core.curation.merge import Tally
from core.records.times import iso

if TYPE_CHECKING:
    from core.curation.exchange.export import Exported
    from core.curation.exchange.import_plan import Row
    from core.metrics.pruning import Pruning
    from core.records.patterns import Pattern
    from core.sources.archives import ArchivedPattern


def prune_json(item: Pruning, pattern: Pattern) -> Shape:
    """One pattern that the policy takes out."""
    return {
        "id": item.pattern_id,
        "type": pattern.type.value,
        "title": pattern.title,
        "rules": [rule.value for rule in item.rules],
        "reason": item.reason,
        "success_rate": number(item.rate),
        "uses": item.uses,
        "last_used": iso(item.last_activity),
    }


def archived_json(item: ArchivedPattern) -> Shape:
    """One pattern in an archive."""
    return {
        "id": item.pattern.id,
        "type": item.pattern.type.value,
        "title": item.pattern.title,
        "at": iso(item.at),
        "by": item.by or None,
        "reason": item.reason or None,
        "source": item.source or None,
        "file": item.file,
    }


def duplicate_json(kept: str, other: str, similarity: float) -> Shape:
    """Two patterns that say nearly the same."""
    return {"kept": kept, "other": other, "similarity": number(similarity)}


def merge_json(kept: str, other: str, before: Pattern, after: Pattern) -> Shape:
    """What a pattern's record would become if another one were merged into it."""
    return {
        "kept": kept,
        "other": other,
        "before": _counts(before),
        "after": _counts(after),
        "aliases": list(after.aliases),
    }


def _counts(pattern: Pattern) -> Shape:
    tally = Tally.of(pattern.recorded_counts)
    return {
        "successes": tally.successes,
        "failures": tally.failures,
        "usage_count": tally.uses,
        "success_rate": number(pattern.recorded_counts.rate),
    }


def exported_json(file: str, exported: Exported, left_out: Sequence[str]) -> Shape:
    """What was exported."""
    return {
        "file": file,
        "exported": exported.patterns,
        "left_out": list(left_out),
        "masked": [{"id": item.pattern_id, "pointer": item.pointer, "kind": item.kind} for item in exported.masked],
    }


def row_json(row: Row) -> Shape:
    """What an import makes of one record."""
    return {
        "action": row.action.value,
        "id": row.pattern_id,
        "type": row.type.value,
        "target": row.target or None,
        "quarantined": bool(row.content_hash),
        "changes": sorted([*row.set, *row.unset]),
        "similar": [{"id": id, "similarity": number(ratio)} for id, ratio in row.similar],
        "why": row.why or None,
    }
