"""Parts of pattern records that all pattern types share."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.record_text import one_line
from core.records.extractions import Material
from core.records.patterns import Pattern, PatternType
from core.sources.patterns import read_patterns

_PREFIXES: Final = {
    PatternType.ERROR: "pat-error",
    PatternType.SUCCESS: "pat-success",
    PatternType.ANTI: "pat-anti",
    PatternType.TEMPLATE: "tmpl",
}


def make_source(material: Material, at: datetime | None, *, by: str = "", **fields: Any) -> dict[str, Any]:
    """Make an entry of `source_loops`."""
    entry: dict[str, Any] = {"loop_id": material.loop_id, **fields}
    if at is not None:
        entry["timestamp"] = format_timestamp(at)
    if by:
        entry["contributed_by"] = one_line(by)
    return entry


def find_contributor(material: Material, agent: str = "") -> str:
    """Return the contributor: who reported, else the loop's agent, else `agent`."""
    names = (
        material.agent,
        material.loop.agent if material.loop else "",
        agent,
        material.task.agent if material.task else "",
        *(logged.attempt.agent for logged in reversed(material.attempts)),
    )
    return next(filter(None, names), "")


def make_use_dates(at: datetime | None) -> dict[str, Any]:
    """Make the dates of discovery and last use, if known."""
    return {} if at is None else {"first_discovered": format_timestamp(at), "last_used": format_timestamp(at)}


def format_timestamp(at: datetime) -> str:
    """Format a time for pattern files, to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def find_end(material: Material) -> datetime | None:
    """Return when the work ended, if known."""
    loop, task = material.loop, material.task
    if end := (loop.ended_at if loop else None) or (task.completed_at if task else None):
        return end
    times = [iteration.at for iteration in material.iterations] + [session.updated_at for session in material.sessions]
    times += [logged.attempt.ended_at for logged in material.attempts]
    return max(filter(None, times), default=loop.last_activity if loop else None)


def parse_pattern(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """Parse a record without ID to a pattern with the ID ""."""
    key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
    data = msgspec.json.encode({"patterns": [{key: f"{_PREFIXES[kind]}-{slug}-000", **record}]})
    found = read_patterns("", data).patterns
    if not found:
        raise BadInput(f"the record of {slug!r} is not a valid pattern")
    return replace(found[0], id="")
