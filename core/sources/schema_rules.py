"""Rules that the schemas in `core.sources.schema` are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True)
class Rule:
    """Allowed values of one field.

    Attributes:
        kind: string, time, number, integer, boolean, array, object, any, or `texts` (an object of strings with any
            keys).
        required: Whether its object must have it.
        words: The only allowed values; empty for any.
        tolerated: Further values that other tools write; not reported.
        pattern: A regular expression that the whole string must match.
        advisory: Whether a mismatch with `pattern` is only information.
        low, high: Limits of a number.
        rate: Whether it is a rate from 0 to 1, which other writers spell as a percentage.
        length: Minimum length of a string, in characters.
        or_text: Whether a plain string is accepted instead of the object.
        items: Rule for the items of an array.
        keys: Rules for the keys of an object, in documented order; other keys are not checked.
    """

    kind: str
    required: bool = False
    words: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    pattern: str = ""
    advisory: bool = False
    low: float = -math.inf
    high: float = math.inf
    rate: bool = False
    length: int = 0
    or_text: bool = False
    items: Rule | None = None
    keys: Mapping[str, Rule] = field(default_factory=dict)


def obj(required: bool = False, /, **keys: Rule) -> Rule:
    return Rule("object", required, keys=keys)


def objects(required: bool = False, /, **keys: Rule) -> Rule:
    return Rule("array", required, items=obj(**keys))


def id_rule(prefix: str) -> Rule:
    return Rule("string", True, pattern=rf"{prefix}-[a-z0-9-]+-\d{{3}}")


def words(words: str, required: bool = False, tolerated: str = "") -> Rule:
    return Rule("string", required, tuple(words.split()), tuple(tolerated.split()))


STRING: Final = Rule("string")
REQUIRED_STRING: Final = Rule("string", True)
TIME: Final = Rule("time")
NUMBER: Final = Rule("number")
INTEGER: Final = Rule("integer")
COUNT: Final = Rule("integer", low=0)
REQUIRED_COUNT: Final = Rule("integer", True, low=0)
RATE: Final = Rule("number", low=0, high=1, rate=True)
REQUIRED_RATE: Final = Rule("number", True, low=0, high=1, rate=True)
FLAG: Final = Rule("boolean")
TEXTS: Final = Rule("array", items=STRING)
TREND: Final = objects(timestamp=TIME, success_rate_snapshot=NUMBER, sample_size=INTEGER)
