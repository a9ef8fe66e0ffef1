"""Parts that the records of all four types of (3) have in common."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.record_text import one_line
from core.records.material import Material
from core.records.patterns import Pattern, PatternType
from core.sources.patterns import read_patterns

_PREFIXES: Final = {
    PatternType.ERROR: "pat-error",
    PatternType.SUCCESS: "pat-success",
    PatternType.ANTI: "pat-anti",
    PatternType.TEMPLATE: "tmpl",
}


def source(material: Material, at: datetime | None, *, by: str = "", **told: Any) -> dict[str, Any]:
    """An entry of `source_loops`: the loop, what it told, when, and who contributed it."""
    entry: dict[str, Any] = {"loop_id": material.loop_id, **told}
    if at is not None:
        entry["timestamp"] = stamp(at)
    if by:
        entry["contributed_by"] = one_line(by)
    return entry


def contributor(material: Material, agent: str = "") -> str:
    """The agent that contributed a pattern: the one that reports, the loop's owner, or who did the work.

    Args:
        agent: Who did this part of the work, as far as that is known.
    """
    names = (
        material.agent,
        material.loop.agent if material.loop else "",
        agent,
        material.task.agent if material.task else "",
        *(logged.attempt.agent for logged in reversed(material.attempts)),
    )
    return next(filter(None, names), "")


def first_use(at: datetime | None) -> dict[str, Any]:
    """When a pattern was discovered and used last, where that is known."""
    return {} if at is None else {"first_discovered": stamp(at), "last_used": stamp(at)}


def stamp(at: datetime) -> str:
    """A time as the examples of (0) and (3) write it; to the second."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def ended(material: Material) -> datetime | None:
    """When what is told was over, as far as that is known."""
    loop, task = material.loop, material.task
    if over := (loop.ended_at if loop else None) or (task.completed_at if task else None):
        return over
    times = [iteration.at for iteration in material.iterations] + [session.updated_at for session in material.sessions]
    times += [logged.attempt.ended_at for logged in material.attempts]
    return max(filter(None, times), default=loop.last_activity if loop else None)


def pattern_of(kind: PatternType, slug: str, record: dict[str, Any]) -> Pattern:
    """The pattern that a record without id would be; its id is "", which no pattern of a registry has."""
    key = "template_id" if kind is PatternType.TEMPLATE else "pattern_id"
    data = msgspec.json.encode({"patterns": [{key: f"{_PREFIXES[kind]}-{slug}-000", **record}]})
    found = read_patterns("", data).patterns
    if not found:
        raise BadInput(f"a record of {slug!r} that no pattern can be read from")
    return replace(found[0], id="")
