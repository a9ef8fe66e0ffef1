"""Links between the anti-patterns and the success pattern of one loop; see docs/extraction.md#links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from core.base.record_text import one_line
from core.records.extractions import Proposal
from core.records.patterns import PatternType

_BETTER: Final = "better_alternative"
_LINK: Final = "success_pattern_id"
_RELATED: Final = "related_patterns"
_STEPS: Final = 3
"""Number of steps, the last ones, that describe the alternative."""


def add_alternatives(proposals: Sequence[Proposal]) -> tuple[Proposal, ...]:
    """Add the approach that reached the goal to the anti-patterns of the same loop, as their alternative."""
    success = next((one for one in proposals if one.type is PatternType.SUCCESS), None)
    if success is None or (success.refused and not success.known_as):
        return tuple(proposals)
    known_id = success.known_as or success.duplicate_of
    steps = one_line("; ".join(success.record["approach"]["steps"][-_STEPS:]))
    found = []
    for one in proposals:
        if one.type is PatternType.ANTI and not one.refused:
            better = {"description": steps} | one.record.get(_BETTER, {}) | ({_LINK: known_id} if known_id else {})
            one = replace(one, record={**one.record, _BETTER: better})
        found.append(one)
    return tuple(found)


def link_alternatives(
    records: Mapping[str, dict[str, Any]], types: Mapping[str, PatternType]
) -> dict[str, dict[str, Any]]:
    """Link the anti-patterns and the success pattern among new records of one loop, by ID."""
    success = next((id for id in records if types[id] is PatternType.SUCCESS), None)
    if success is None:
        return dict(records)
    antis = [id for id in records if types[id] is PatternType.ANTI and _LINK not in records[id].get(_BETTER, {})]
    found = dict(records)
    for id in antis:
        found[id] = {**records[id], _BETTER: {**records[id].get(_BETTER, {}), _LINK: success}}
    if antis:
        found[success] = {**records[success], _RELATED: [*records[success].get(_RELATED, ()), *antis]}
    return found
