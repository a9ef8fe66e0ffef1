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
    r"|reject|forbid|prevent|stop|against|beware of|no need to|anti-?pattern"
    r"|(?:unsafe|dangerous|wrong|mistake|bad idea) to)\b",
    re.IGNORECASE,
)
_TURNED: Final = re.compile(
    r"\b(?:hesitate|forget|fail|worry|afraid|shy|omit|neglect|only|wait|delay|care|mind|matter|just|problem|harm"
    r"|refrain|avoid|stop|without|until|unless)\w*\b|\b(?:by|via|through)\s+\w+ing\b|\b(?:by|via)\s*$",
    re.IGNORECASE,
)
"""Behind a negation: "do not hesitate to" tells to do it, "avoid delays by running" too."""
_DOUBLED: Final = re.compile(
    r"\b(?:(?:is|was|be|seems)\s+(?:an?\s+)?(?:wrong|bad|mistake|error|foolish|unwise|unsafe|dangerous|risky)"
    r"|(?:if|when|unless)\s+(?:you|we|it|they|one)|why|never|not|don'?t|cannot|can'?t|nothing|nobody|impossible)\b"
    r"(?![^\n]*\b(?:and|or|nor)\b)[^\n]{0,40}$",
    re.IGNORECASE,
)
"""Before a negation: "it is wrong not to", "why not", "nothing works without" tell to do it."""
_ABOUT: Final = re.compile(
    r"\s*(?:(?:ever|to|to ever|be|the|a|an|any|such|use of|commands? like|things? like)\s+){0,3}(?:\w+ing\b"
    r"|(?:accept|add|allow|apply|answer|append|approve|bypass|call|catch|change|commit|copy|delete|disable|do|download"
    r"|drop|enable|execute|export|fetch|follow|force|force-push|grant|hard-?code|include|install|invoke|let|log|merge"
    r"|open|paste|pass|pip|pipe|post|print|publish|push|put|read|rely|remove|replace|resort|run|send|set|share|skip"
    r"|start|store|switch|trust|try|turn|type|upload|use|work|write)(?:ed|d)?\b|[\"'`(]*$)",
    re.IGNORECASE,
)
"""Behind a negation that is surely about what follows: something that is done, or at once the thing itself."""
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
    if avoided:
        return Polarity.TELLS if negations else Polarity.WARNS
    if not negations:
        return Polarity.MAYBE_WARNS if _BAD.match(text, end) else Polarity.TELLS
    before, behind = clause[: negations[-1].start()], clause[negations[-1].end() :]
    if _TURNED.search(behind) or _DOUBLED.search(before):
        return Polarity.TELLS
    near = len(behind.split()) <= _NEAR_WORDS
    return Polarity.WARNS if near and _ABOUT.match(behind) else Polarity.MAYBE_WARNS
