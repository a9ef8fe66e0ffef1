"""Messages about what other members changed: who, when and what."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec.structs import replace

from core.base.formatting import format_age, format_day, shorten_id
from core.base.text import visible_line
from core.decisions.conflicts import conflict_text
from core.records.decisions import Decision
from core.team.refusals import late_reason

if TYPE_CHECKING:
    from core.records.team import SpaceConflict

OwnRecord = Callable[[str], Mapping[str, Any]]
"""Returns a record of this project as the space would get it, {} if there is none."""
_MAX_LINE: Final = 80
_ID_KEYS: Final = frozenset({"pattern_id", "template_id", "id"})


def describe_conflict(
    conflict: SpaceConflict, known: Mapping[str, Decision], own_record: OwnRecord, now: datetime
) -> str:
    """Describe, to the author of a decision, why it was not made."""
    if conflict.kind == "decision" and (decision := _decision(conflict)) is not None:
        return conflict_text(decision, known, now)
    what = _changed_text(conflict, own_record)
    return f"{what} by {shorten_id(conflict.by)} {_changes(conflict, own_record, format_age(conflict.at, now))}"


def describe_late(conflict: SpaceConflict, known: Mapping[str, Decision], own_record: OwnRecord) -> str:
    """Describe, for the log, why a decision that was made offline is undone."""
    if conflict.kind == "decision" and (decision := _decision(conflict)) is not None:
        return late_reason(decision, known)
    when = f"on {format_day(conflict.at)} at {conflict.at:%H:%M} UTC"
    change = first_change(own_record(conflict.subject), _record(conflict))
    return f"{_changed_text(conflict, own_record)} by {shorten_id(conflict.by)} {when}{change}"


def _changes(conflict: SpaceConflict, own_record: OwnRecord, when: str) -> str:
    change = first_change(own_record(conflict.subject), _record(conflict))
    return f"{when}{change}; your decision was not made, review it again"


def _changed_text(conflict: SpaceConflict, own_record: OwnRecord) -> str:
    name = shorten_id(conflict.subject)
    if conflict.kind == "decision":
        return f"{name} was decided on"
    if conflict.record is None:
        return f"{name} was removed from the registry of the team"
    return f"the text of {name} was changed" if own_record(conflict.subject) else f"{name} was added"


def _decision(conflict: SpaceConflict) -> Decision | None:
    """Return the decision of a conflict, with the time of the server's clock and the member who sent it."""
    try:
        decision = msgspec.json.decode(conflict.payload, type=Decision)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return replace(decision, at=conflict.at, by=conflict.by)


def _record(conflict: SpaceConflict) -> Mapping[str, Any]:
    try:
        return msgspec.json.decode(conflict.record or "{}", type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        return {}


def first_change(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """Return the first line that differs between two records as `: 'old' → 'new'`, "" if none does."""
    if not before or not after:
        return ""
    for key in (*after, *(key for key in before if key not in after)):
        if key in _ID_KEYS or before.get(key) == after.get(key):
            continue
        old, new = [*_lines(before.get(key))], [*_lines(after.get(key))]
        for number in range(max(len(old), len(new))):
            one, other = (lines[number] if number < len(lines) else "" for lines in (old, new))
            if one != other:
                return f": '{visible_line(one, _MAX_LINE)}' → '{visible_line(other, _MAX_LINE)}'"
    return ""


def _lines(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _lines(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _lines(item)
    elif value is not None:
        yield from str(value).splitlines()
