"""Loops whose only state file vanishes at their end (docs/adapters.md#reading)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles

MAX_REMEMBERED: Final = 200  # loops of one runner
_KEY: Final = "vanishing"


class Seen(Struct):
    """The last content of a state file; `missing_since` is when it was first missing, None while it exists."""

    state: dict[str, Any]
    seen_at: datetime
    missing_since: datetime | None = None


def remember_states(files: RunnerFiles, current: Mapping[str, dict[str, Any]], now: datetime) -> dict[str, Seen]:
    """Return the present states by ID, and those that were seen before; keeps them for later runs of the program."""
    known = dict(_remembered(files))
    for identifier, seen in known.items():
        if identifier not in current and seen.missing_since is None:
            seen.missing_since = now
    for identifier, state in current.items():
        old = known.get(identifier)
        is_same = old is not None and old.state == state and old.missing_since is None
        known[identifier] = old if old is not None and is_same else Seen(state, now)
    newest = sorted(known.items(), key=lambda item: item[1].seen_at)[-MAX_REMEMBERED:]
    value = {identifier: msgspec.to_builtins(seen) for identifier, seen in newest}
    if value != (files.remembered(_KEY) or {}):
        files.remember(_KEY, value)
    return dict(newest)


def _remembered(files: RunnerFiles) -> Iterator[tuple[str, Seen]]:
    value = files.remembered(_KEY)
    for identifier, seen in value.items() if isinstance(value, dict) else ():
        try:
            yield str(identifier), msgspec.convert(seen, Seen)
        except (msgspec.ValidationError, TypeError, ValueError):
            continue
