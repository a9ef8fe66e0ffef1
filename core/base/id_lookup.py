"""Lookup of a record by its ID, a prefix of it, or a unique part of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from core.base.errors import UnknownRecord
from core.base.text import plural, visible_line

MIN_FRAGMENT: Final = 3  # Fewest characters of a part of an ID.
MAX_NAMED: Final = 6  # Most IDs in an error message.
_MAX_NAME: Final = 200  # Characters of a name that are compared.
_MIN_RATIO: Final = 75.0  # Similarity 0..100 from which an ID is suggested.


def find_matching_ids(name: str, known: Collection[str], *, fragments: bool = False) -> list[str]:
    """Return IDs equal to `name`, else with it as prefix, else (`fragments`) as part."""
    if name in known:
        return [name]
    found = sorted(id for id in known if name and id.startswith(name))
    if not found and fragments and len(name) >= MIN_FRAGMENT:
        found = sorted(id for id in known if name.casefold() in id.casefold())
    return found


def require_one(found: Sequence[str], name: str, *, what: str, command: str, known: Collection[str] = ()) -> str:
    """Return the only ID of `found`, the matches of `name`.

    `what` is the kind of record, such as `debug session`; `command` lists such records. Raises UnknownRecord if several
    IDs match, or if none matches; the message then suggests the nearest of the `known` IDs.
    """
    if len(found) == 1:
        return found[0]
    shown = visible_line(name, 80)
    if found:
        raise ambiguous_id_error(name, found)
    raise UnknownRecord(f"no {what} {shown!r}; see: ralphdeck {command}{suggest_id(name, known)}")


def ambiguous_id_error(name: str, found: Sequence[str]) -> UnknownRecord:
    """Make the error for a name that matches several IDs, of which it lists the last."""
    return UnknownRecord(f"{visible_line(name, 80)!r} is ambiguous ({name_ids(found)}); use a longer id")


def name_ids(ids: Sequence[str]) -> str:
    """List the last IDs, and count the others."""
    names = ", ".join(visible_line(id, 80) for id in ids[-MAX_NAMED:])
    more = len(ids) - MAX_NAMED
    return f"{names} and {plural(more, 'other')}" if more > 0 else names


def suggest_id(name: str, known: Collection[str]) -> str:
    """Return "; did you mean ID?" with the known ID nearest to `name` or with a part like it, "" if none is near."""
    from rapidfuzz import fuzz, process  # only for a mistyped ID

    near = process.extractOne(name[:_MAX_NAME].casefold(), list(known), scorer=fuzz.WRatio, score_cutoff=_MIN_RATIO)
    return f"; did you mean {visible_line(near[0], 80)}?" if near else ""
