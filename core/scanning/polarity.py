"""Whether a text tells an agent to do something or warns of it; a warning does no harm."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import Final

_REACH: Final = 120
"""Characters before a match in which a negation may stand."""
_BREAK: Final = re.compile(r"[\n;!?,:]|\.(?=\s|$)|--\s|\b(?:but|then|and then|instead,|so that|because|however)\b")
"""What a negation does not reach across."""
_NEGATION: Final = re.compile(
    r"\b(?:never|not|don'?t|doesn'?t|avoid(?:s|ing)?|instead of|rather than|without|no|cannot|can'?t|mustn'?t|refuse"
    r"|reject|forbid|prevent|stop|against|beware of|no need to|anti-?pattern|unsafe to|dangerous to|wrong to)\b",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(
    r"\b(?:hesitate|forget|fail|worry|afraid|omit|neglect|only|wait|care|mind|matter|just|problem|harm|refrain|avoid"
    r"|stop|without)\w*\b",
    re.IGNORECASE,
)
"""Behind a negation: "do not hesitate to" tells to do it."""
_BAD: Final = re.compile(
    r"(?i)[^.\n;]{0,60}\b(?:(?:is|are|was|were)\s+(?:rejected|forbidden|dangerous|unsafe|not allowed|never|bad|wrong"
    r"|blocked)|loses|lost|breaks|broke|must (?:never|not)|should (?:never|not)|destroys)\b"
)
_NEAR_WORDS: Final = 4
"""So many words may stand between a negation and what it surely is about."""


class Polarity(IntEnum):
    """How sure it is that a text warns of something."""

    TELLS = 0
    MAYBE_WARNS = 1
    WARNS = 2


def polarity(text: str, start: int, end: int, *, avoided: bool) -> Polarity:
    """What `text` says of its part from `start` to `end`.

    Args:
        text: All of it.
        start, end: The part.
        avoided: The text names what is to be avoided: there a negation tells to do it ("building without ...").
    """
    clause = _BREAK.split(text[max(start - _REACH, 0) : start])[-1]
    negations = list(_NEGATION.finditer(clause))
    behind = clause[negations[-1].end() :] if negations else ""
    negated = bool(negations) and not _TURNED.search(behind)
    if avoided:
        return Polarity.TELLS if negations else Polarity.WARNS
    if negated:
        return Polarity.WARNS if len(behind.split()) <= _NEAR_WORDS else Polarity.MAYBE_WARNS
    return Polarity.MAYBE_WARNS if not negations and _BAD.match(text, end) else Polarity.TELLS
