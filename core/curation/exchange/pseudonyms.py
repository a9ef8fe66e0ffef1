"""Pseudonyms for the loop IDs of a project."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final

_PSEUDONYM: Final = re.compile(r"loop-[0-9a-f]{8}")
_LOOP_ID: Final = re.compile(r"(?<![A-Za-z0-9])ralph-[A-Za-z0-9_-]{1,100}?-[0-9a-f]{8}(?![A-Za-z0-9])")
_NAME: Final = re.compile(r"[^\W_](?:[\w-]*[^\W_])?")
"""A run of letters, digits, `-` and `_` in a text."""
_LETTER: Final = re.compile(r"[^\W\d_]")
_MARK: Final = re.compile(r"[\W\d]")
_MIN_LOOP_ID: Final = 3


def pseudonym(loop_id: str, origin: str) -> str:
    """The pseudonym of a loop ID in one project; a pseudonym stays unchanged."""
    if _PSEUDONYM.fullmatch(loop_id):
        return loop_id
    return f"loop-{sha256(f'{origin} {loop_id}'.encode(errors='replace')).hexdigest()[:8]}"


class LoopNames:
    """Replaces loop IDs in texts by pseudonyms.

    Args:
        origin: The id of this project.
        known: Ids of loops; one that is no more than a word or a number would be found in texts that do not mean it.
    """

    def __init__(self, origin: str, known: Iterable[str]) -> None:
        self._origin = origin
        self._known = {id for id in known if len(id) >= _MIN_LOOP_ID and _LETTER.search(id) and _MARK.search(id)}
        odd = sorted((id for id in self._known if not _NAME.fullmatch(id)), key=len, reverse=True)
        self._names = re.compile("|".join([*(rf"(?<!\w){re.escape(id)}(?!\w)" for id in odd), _NAME.pattern]))

    def pseudonym(self, loop_id: str) -> str:
        """See `pseudonym`."""
        return pseudonym(loop_id, self._origin)

    def without(self, text: str) -> str:
        """Replace known loop IDs, and everything that looks like one."""
        return self._names.sub(self._named, text)

    def _named(self, found: re.Match[str]) -> str:
        if found[0] in self._known:
            return self.pseudonym(found[0])
        return _LOOP_ID.sub(lambda loop: self.pseudonym(loop[0]), found[0]) if "ralph-" in found[0] else found[0]
