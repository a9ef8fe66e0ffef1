"""Position of the sentences in a text that the scan stops."""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import pairwise
from typing import Final

from core.scanning.scan import scan_text

_END: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_LABEL: Final = re.compile(r"\s*(?:- )?(?:\d{1,2}\. )?(?:[A-Z][a-z]{2,11}: )?")
"""Number or label in front of a text."""


def find_stopped_sentences(text: str, rules: Collection[str]) -> tuple[tuple[int, int], ...]:
    """Find (start, end) of each sentence in which one of some rules blocks or holds the text.

    Returns the whole text if a rule matches only across sentences.

    Args:
        text: Displayed text of one or more lines.
        rules: IDs of rules.
    """
    edges = [0, *(end.end() for end in _END.finditer(text)), len(text)]
    found = [(start, end) for start, end in pairwise(edges) if _is_stopped(text[start:end], rules)]
    if not found and _is_stopped(text, rules):
        found = [(0, len(text))]
    return tuple(_trimmed(text, start, end) for start, end in found)


def _is_stopped(text: str, rules: Collection[str]) -> bool:
    return any(one.rule in rules and one.severity.stops for one in scan_text(text))


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    label = _LABEL.match(text, start, end)
    return (label.end() if label else start), start + len(text[start:end].rstrip())
