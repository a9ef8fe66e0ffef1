r"""The rules of the safety scan, loaded from `rules.jsonl`.

`python -m tests.reference` writes this file from `rule_tables/*.yaml`, and finds the literal parts of all patterns.

RE2 has no look-around, so the exceptions of a rule are in `unless`. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
Patterns match case-insensitively in normalized text, see `core.base.scanning.normalization`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from core.records.patterns import Severity

VERSION: Final = 2
"""Version of the rules; an approval of a text does not cover what later rules block (docs/safety.md#approvals)."""
TABLE: Final = Path(__file__).with_name("rules.jsonl")

Literals = tuple[tuple[tuple[str, ...], ...], ...]
"""Literal parts of a pattern in lower case: a match contains a text of each group of an alternative; () if unknown."""


class Rule(Struct, frozen=True, omit_defaults=True):
    """Kind of harm that a text could do to an agent."""

    id: str  # name in files and JSON
    meaning: str  # what the text does, in words that follow "this text"
    severity: Severity  # severity of a match
    patterns: tuple[str, ...] = ()  # RE2 patterns, any of which matches
    unless: str = ""  # pattern of matches to ignore
    advice: bool = False  # whether a warning of the thing is harmless: "never use --no-verify"
    literals: tuple[Literals, ...] = ()  # of each pattern; only for speed
    cited: bool = False  # whether it is harmless to forbid or to quote the thing: 'texts such as "ignore the rules"'
    since: int = 1  # version of the rules that added it

    @property
    def critical(self) -> bool:
        return self.severity is Severity.BLOCKED


BIDI: Final = Rule("bidi", "turns the direction of text, so that it reads differently", Severity.BLOCKED)
TAGS: Final = Rule("hidden-text", "contains invisible letters", Severity.BLOCKED)
INVISIBLE: Final = Rule("invisible", "contains invisible characters", Severity.FLAGGED)
LOOKALIKE: Final = Rule("lookalike", "mixes letters of other alphabets into words", Severity.FLAGGED)
SECRET: Final = Rule("secret", "contains what looks like a secret", Severity.FLAGGED)
BROAD: Final = Rule("broad-trigger", "has a trigger that matches nearly every message", Severity.FLAGGED)
LONG: Final = Rule("unscanned", "is too long to be scanned completely", Severity.FLAGGED)
COUNTS: Final = Rule("counts", "states many uses that no other record confirms", Severity.FLAGGED)
FOREIGN_SCRIPT: Final = Rule(
    "foreign-script", "is written in letters that this project does not use", Severity.HELD, since=2
)
_HIDING: Final = (
    r"(?:\b[^\W_][ \t._*-]{1,8}){7}|[A-Za-z0-9+/]{24}|(?:[\\]x[0-9a-f]{2}){6}|(?:[\\]u00[0-9a-f]{2}){4}"
    r"|(?:%[0-9a-f]{2}){6}|(?:&#x?[0-9a-f]{2,4};){4}|\b(?:[a-z]*[013457@$][a-z013457@$]*[ \t]+){3}"
)
HIDING: Final = Rule("hiding", "may hide text", Severity.FLAGGED, (_HIDING,), literals=((),))
"""Signs of hidden text: spaced-out words, base64, escapes, digits for letters. Not a suspicion by itself."""
_OTHER: Final = (BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS, FOREIGN_SCRIPT)
"""Rules without patterns."""


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return all rules with patterns, most severe first; loads them once."""
    return tuple(msgspec.json.Decoder(Rule).decode_lines(TABLE.read_bytes()))


@cache
def rule_meanings() -> dict[str, str]:
    return {rule.id: rule.meaning for rule in (*load_rules(), *_OTHER)}
