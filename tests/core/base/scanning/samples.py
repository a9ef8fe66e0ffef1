"""Short texts that a pattern matches, drawn from its syntax tree."""

from __future__ import annotations

import random
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from typing import Any

_CLASSES = {"CATEGORY_WORD": "a", "CATEGORY_NOT_WORD": " ", "CATEGORY_DIGIT": "1", "CATEGORY_SPACE": " "}
_GAP = 10


def sample(pattern: str, seed: int) -> str:
    """One text that probably matches; branches and characters are chosen at random, repeats are as short as allowed."""
    return _drawn(parser.parse(pattern), random.Random(seed))


def _drawn(tree: Any, chance: random.Random) -> str:
    return "".join(_one(kind, value, chance) for kind, value in tree)


def _one(kind: Any, value: Any, chance: random.Random) -> str:
    if kind is kinds.LITERAL:
        return chr(value)
    if kind is kinds.NOT_LITERAL or kind is kinds.ANY:
        return " "
    if kind is kinds.BRANCH:
        return _drawn(chance.choice(value[1]), chance)
    if kind is kinds.SUBPATTERN:
        return _drawn(value[-1], chance)
    if kind in (kinds.MAX_REPEAT, kinds.MIN_REPEAT):
        # A gap of many characters gets one, so that the words around it stay apart.
        return "".join(_drawn(value[2], chance) for _ in range(max(value[0], int(value[1] >= _GAP))))
    if kind is kinds.IN:
        return _member(value, chance)
    return ""


def _member(members: Any, chance: random.Random) -> str:
    if members[0][0] is kinds.NEGATE:
        return next(char for char in " x1~" if not re_matches(members[1:], char))
    kind, value = chance.choice(members)
    if kind is kinds.RANGE:
        return chr(value[0])
    return chr(value) if kind is kinds.LITERAL else _CLASSES.get(str(value), "x")


def re_matches(members: Any, char: str) -> bool:
    """Whether a character is one of the members of a set."""
    return any(
        (kind is kinds.LITERAL and value == ord(char))
        or (kind is kinds.RANGE and value[0] <= ord(char) <= value[1])
        or (kind is kinds.CATEGORY and _CLASSES.get(str(value)) == char)
        for kind, value in members
    )
