"""Building blocks of hostile projects: payloads in turn, times, IDs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.hostile.payloads import PAYLOADS, Payload

NOW: Final = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
"""All times in the projects are before this one."""
MAX_NAME: Final = 120
"""Maximum length of a file name made of a payload."""


class Sower:
    """Returns payloads in turn, so that each field of a kind gets every payload in one of the records.

    Args:
        first: Index of the first payload.
        payloads: Payloads to use.
    """

    def __init__(self, first: int, payloads: Sequence[Payload] = PAYLOADS) -> None:
        self._next = first
        self._payloads = payloads

    def __call__(self, word: str = "") -> str:
        """The next payload, after a word that names the field."""
        payload = self._payloads[self._next % len(self._payloads)]
        self._next += 1
        return f"{word}{payload.text}"

    def many(self, word: str = "") -> list[str]:
        """The next three payloads."""
        return [self(word), self(word), self(word)]


def when(days: float) -> str:
    """ISO time `days` days before `NOW`."""
    return (NOW - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def dump(value: Any) -> str:
    """JSON with `\\uXXXX` for everything beyond ASCII, which allows lone surrogates."""
    return json.dumps(value, indent=1)


def loop_id(n: int) -> str:
    """ID in the state of the n-th loop; differs from the name of its folder."""
    return f"ralph-{PAYLOADS[n].name}-{n:08x}{_short(PAYLOADS[n])}"


def pattern_id(kind: str, n: int) -> str:
    """ID of the n-th pattern of a type."""
    return f"{'tmpl' if kind == 'template' else f'pat-{kind}'}-{PAYLOADS[n].name}-{n:03d}{_short(PAYLOADS[n])}"


def _short(payload: Payload) -> str:
    return payload.text[:MAX_NAME]
