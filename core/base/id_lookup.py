"""Which record a person means who gives its id or the beginning of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from core.base.errors import UnknownRecord
from core.base.text import visible_line


def find_matching_ids(name: str, known: Collection[str]) -> list[str]:
    """The ids that a name may mean, in order: it alone where it is one, else those that begin so; none of an empty one.

    Args:
        known: All ids.
    """
    return [name] if name in known else sorted(id for id in known if name and id.startswith(name))


def require_one(found: Sequence[str], name: str, *, what: str, ids: str, command: str) -> str:
    """The one id of those that a name may mean.

    Args:
        what: What a record is called: `debug session`.
        ids: What several ids are called: `ids of debug sessions`.
        command: What lists them, without the name of the program.

    Raises:
        UnknownRecord: There is none, or there are several.
    """
    if len(found) == 1:
        return found[0]
    shown = visible_line(name, 80)
    if found:
        raise UnknownRecord(f"{shown!r} begins {len(found)} {ids}; give more of it")
    raise UnknownRecord(f"no {what} {shown!r}; see: ralphdeck {command}")
