"""The record of an anti-pattern that an accepted inversion writes; see docs/file-formats.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from core.base.errors import Refused
from core.learning.assessment import Assessment
from core.learning.inversion_proposals import Inversion
from core.records.patterns import Pattern
from core.records.times import iso
from core.sources.patterns import read_patterns


def anti_pattern_record(
    pattern: Pattern, assessment: Assessment, proposal: Inversion, text: str, anti_id: str, at: datetime
) -> dict[str, Any]:
    """An anti-pattern made of `pattern`, with its source loops and `inverted_from`."""
    sources = {source.loop_id: source for source in pattern.source_loops}
    source_loops = []
    for loop_id in proposal.source_loops:
        entry: dict[str, Any] = {"loop_id": loop_id}
        source = sources.get(loop_id)
        if source is not None and source.iteration is not None:
            entry["failure_iteration"] = source.iteration
        if source is not None and source.at is not None:
            entry["timestamp"] = iso(source.at)
        source_loops.append(entry)
    record: dict[str, Any] = {
        "pattern_id": anti_id,
        "approach_description": text,
        "failure_mode": proposal.failure_mode,
        "why_it_fails": proposal.why_it_fails,
    }
    if proposal.better_alternative:
        record["better_alternative"] = {"description": proposal.better_alternative}
        if proposal.better_pattern_id:
            record["better_alternative"]["success_pattern_id"] = proposal.better_pattern_id
    record |= {
        "source_loops": source_loops,
        "failure_rate": proposal.failures / proposal.total if proposal.total else 0.0,
        "occurrence_count": proposal.total,
        "first_discovered": iso(at),
    }
    if assessment.last_used is not None:
        record["last_used"] = iso(assessment.last_used)
    record |= {"tags": list(pattern.tags), "inverted_from": pattern.id, "aliases": [f"anti-{pattern.id}"]}
    # Text quoted from files can contain lone surrogates, which no file can store.
    return dict(json.loads(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace")))


def as_pattern(record: Mapping[str, Any]) -> Pattern:
    """Parse a record as it will be read again from its file."""
    found = read_patterns("patterns.json", json.dumps({"patterns": [record]}).encode()).patterns
    if not found:
        raise Refused("the record is not a valid pattern")
    return found[0]
