"""Names of secrets, and the search for values that are assigned to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Final

MaskFormat = Callable[[str, str], str]  # writes the mask of a secret: (kind of the secret, the secret) -> mask
ASSIGNED_HINTS: Final = ("pass", "pwd", "secret", "key", "token", "credential", "_auth")  # parts of names
NAME_HINTS: Final = ("pass", "secret", "key", "token", "credential", "auth", "bearer", "api")
"""Lower-case parts of words for a credential before a value."""
_CASES: Final = {"k": "kK\u212a", "s": "sS\u017f"}  # characters that match a letter without case, if more than two
_REACH: Final = len("private_")  # characters of a name before the hint


def find_assigned(rule: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of a rule that begins with a name, faster than `finditer`."""
    place = 0
    for hint in _hints().finditer(text):
        for start in range(max(hint.start() - _REACH, place), hint.start() + 1):
            if found := rule.match(text, start):
                yield found
                place = found.end()
                break


@cache
def _hints() -> re.Pattern[str]:
    """Any of `ASSIGNED_HINTS`. Both cases are written out, which is several times faster than the flag."""
    return re.compile(
        "|".join("".join(f"[{_CASES.get(char, char + char.upper())}]" for char in hint) for hint in ASSIGNED_HINTS)
    )


def fold_case(text: str) -> str:
    """Lower-case `text` for hints; also folds the long s, which `(?i)s` matches."""
    return text.lower() if text.isascii() else text.lower().replace("\u017f", "s")
