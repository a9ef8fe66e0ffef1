"""What names of secrets contain: a text without any of these needs no search for values behind such a name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

MaskFormat = Callable[[str, str], str]
"""Writes the mask of a secret: (kind of the secret, the secret) -> mask."""
ASSIGNED_HINTS: Final = ("pass", "pwd", "secret", "key", "token", "credential", "_auth")
"""Names of what is assigned contain one of them in lower case."""
NAME_HINTS: Final = ("pass", "secret", "key", "token", "credential", "auth", "bearer", "api")
"""Words before a value that name a credential contain one of them in lower case."""
_CASES: Final = {"k": "kK\u212a", "s": "sS\u017f"}
"""What a regex without case takes for a letter, where that is more than upper and lower case."""
_HINT: Final = re.compile(
    "|".join("".join(f"[{_CASES.get(char, char + char.upper())}]" for char in hint) for hint in ASSIGNED_HINTS)
)
"""Any of `ASSIGNED_HINTS`. Written with both cases: without the flag for it, a search is several times faster."""
_REACH: Final = len("private_")
"""Characters of a name that may stand before the hint."""
SPOKEN: Final = re.compile(
    r"(?i)\bpass(?:word|code|phrase)\s{1,4}(?:for\s[^\n\"'`]{0,40}(?:[\"'`][^\n\"'`]{0,40}[\"'`]\s{1,4})?)?is\s{1,4}"
    r"[\"'`](?P<bare>[^\s\"'`]{4,60})[\"'`]|\bnetworkcredential\(\s{0,4}\"[^\"\n]{1,100}\"\s{0,4},\s{0,4}\"(?P<double>[^\"\n]{3,100})\""
)
"""A password in a sentence, or the second argument of a call that signs in."""


def find_assigned(rule: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """As `rule.finditer(text)`, for a rule that matches from a name on; several times faster."""
    place = 0
    for hint in _HINT.finditer(text):
        for start in range(max(hint.start() - _REACH, place), hint.start() + 1):
            if found := rule.match(text, start):
                yield found
                place = found.end()
                break


def fold_case(text: str) -> str:
    """`text` in lower case, to search it for hints; a regex without case takes a long s for an s as well."""
    return text.lower() if text.isascii() else text.lower().replace("\u017f", "s")
