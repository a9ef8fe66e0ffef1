"""Construction of pattern records: the parts that all pattern types share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.record_text import one_line
from core.questions.extraction.control_texts import clean_record
from core.records.extractions import Material, Proposal
from core.records.patterns import ID_PREFIXES, Pattern, PatternType
from core.sources.patterns import read_patterns

_NEW_RECORDS: Final[dict[PatternType, tuple[str, dict[str, float]]]] = {
    PatternType.ERROR: ("error_pattern", {"success_rate": 1.0, "usage_count": 1}),
    PatternType.SUCCESS: ("success_pattern", {"success_rate": 1.0, "usage_count": 1}),
    PatternType.ANTI: ("anti_pattern", {"failure_rate": 1.0, "occurrence_count": 1}),
    PatternType.TEMPLATE: ("code_template", {"usage_count": 1, "success_rate": 1.0}),
}
"""`type` and counts of a new record: its loop has used the pattern once."""


_MAIN_TEXTS: Final = ("approach", "approach_description", "fix_approach", "description")


def make_proposal(
    kind: PatternType,
    slug: str,
    fields: Mapping[str, Any],
    *,
    sources: Sequence[Any],
    at: datetime | None,
    tags: Iterable[str],
    trace: tuple[str, ...],
    anchors: Sequence[str] = (),
    **more_fields: Any,
) -> Proposal:
    """Propose a pattern that was used once, at `at`.

    Fields that are None, and tags that are "", are left out. `more_fields` are inserted after the counts.
    """
    record_type, counts = _NEW_RECORDS[kind]
    found = {
        "type": record_type,
        **clean_record(fields),
        "source_loops": sources,
        **counts,
        **clean_record(more_fields),
        "first_discovered": format_timestamp(at),
        "last_used": format_timestamp(at),
        "tags": list(dict.fromkeys(filter(None, tags))),
        "anchors": list(anchors) or None,
    }
    record = {name: value for name, value in found.items() if value is not None}
    emptied = any(_main_text(fields, key) and not _main_text(record, key) for key in _MAIN_TEXTS)
    refused = "its text only controls the runner" if emptied else ""
    return Proposal(type=kind, slug=slug, record=record, trace=trace, refused=refused)


def _main_text(fields: Mapping[str, Any], key: str) -> str:
    value = fields.get(key)
    text = value.get("description") if isinstance(value, Mapping) else value
    return text if isinstance(text, str) else ""


def without_uses(kind: PatternType) -> dict[str, float]:
    """Return the counts of a record that no loop has used yet."""
    return dict.fromkeys(_NEW_RECORDS[kind][1], 0) | {key: 0.0 for key in _NEW_RECORDS[kind][1] if "rate" in key}


def make_source(loop_id: str, at: datetime | None, *, by: str = "", **fields: Any) -> dict[str, Any]:
    """Return an entry of `source_loops`, without fields that are None or ""."""
    entry = {"loop_id": loop_id, **fields, "timestamp": format_timestamp(at), "contributed_by": one_line(by) or None}
    return {name: value for name, value in entry.items() if value is not None}


def find_contributor(material: Material, agent: str = "") -> str:
    """Return the first known agent: reporter, loop, `agent`, task, newest attempt."""
    names = (
        material.agent,
        material.loop.agent if material.loop else "",
        agent,
        material.task.agent if material.task else "",
        *(logged.attempt.agent for logged in reversed(material.attempts)),
    )
    return next(filter(None, names), "")


def format_timestamp(at: datetime | None) -> str | None:
    """Format a time in UTC, without fractions of seconds, for pattern files."""
    return None if at is None else at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def find_end(material: Material) -> datetime | None:
    """Return when the work ended, or None if unknown."""
    loop, task = material.loop, material.task
    if end := (loop.ended_at if loop else None) or (task.completed_at if task else None):
        return end
    times = [iteration.at for iteration in material.iterations] + [session.updated_at for session in material.sessions]
    times += [logged.attempt.ended_at for logged in material.attempts]
    return max(filter(None, times), default=loop.last_activity if loop else None)


def parse_pattern(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """Parse a record that has no ID yet; the pattern gets the ID ""."""
    key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
    data = msgspec.json.encode({"patterns": [{key: f"{ID_PREFIXES[kind]}-{slug}-000", **record}]})
    found = read_patterns("", data).patterns
    if not found:
        raise BadInput(f"the record of {slug!r} is not a valid pattern")
    return replace(found[0], id="")
