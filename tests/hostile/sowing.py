"""What hostile trees are made of: payloads given out in turn, times, ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.hostile.payloads import PAYLOADS, Payload

NOW: Final = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
"""The moment that all times of the trees lie before."""
MAX_NAME: Final = 120
"""Characters of a file name made of a payload."""


class Sower:
    """Gives out payloads in turn; each field of a kind meets every payload in one of the records.

    Args:
        first: Index of the first payload.
        payloads: What to sow.
    """

    def __init__(self, first: int, payloads: Sequence[Payload] = PAYLOADS) -> None:
        self._next = first
        self._payloads = payloads

    def __call__(self, word: str = "") -> str:
        """The next payload, behind a word that says which field it is in."""
        payload = self._payloads[self._next % len(self._payloads)]
        self._next += 1
        return f"{word}{payload.text}"

    def many(self, word: str = "") -> list[str]:
        """Three of them."""
        return [self(word), self(word), self(word)]


def when(days: float) -> str:
    """ISO time so many days before `NOW`."""
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def dump(value: Any) -> str:
    """JSON with `\\uXXXX` for everything beyond ASCII, so that lone surrogates are possible."""
    return json.dumps(value, indent=1)


def loop_id(n: int) -> str:
    """The id inside the n-th loop; not the name of its folder."""
    return f"ralph-{PAYLOADS[n].name}-{n:08x}{_short(PAYLOADS[n])}"


def pattern_id(kind: str, n: int) -> str:
    """The id of the n-th pattern of a type."""
    return f"{'tmpl' if kind == 'template' else f'pat-{kind}'}-{PAYLOADS[n].name}-{n:03d}{_short(PAYLOADS[n])}"


def _short(payload: Payload) -> str:
    return payload.text[:MAX_NAME]
