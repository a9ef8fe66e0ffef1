r"""The rules of the safety scan, loaded from `rule_tables/*.yaml`.

A table has `parts`, named pieces of regular expressions that patterns of this and of later tables use as `{name}`, and
`rules`, the fields of `Rule`. Line breaks in a pattern are removed. `phrases` adds patterns for other languages from
`rule_tables/languages.yaml`.

RE2 has no look-around, so `unless` gives the exceptions of a rule. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
Patterns are matched without case in normalized text, see `core.scanning.normalization`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from core.records.suspicions import Severity
from core.scanning.languages import override_patterns, request_patterns
from core.scanning.normalization import normalize_text

_TABLES: Final = ("takeover", "commands", "conduct", "approval", "agent", "risks")
"""Most severe first."""
_FOLDER: Final = Path(__file__).with_name("rule_tables")
_PART: Final = re.compile(r"\{([a-z_]+)\}")


class Rule(Struct, frozen=True, kw_only=True):
    """A kind of harm that a text could do to an agent.

    Attributes:
        id: Name in files and JSON.
        meaning: What the text does, in words that follow "this text".
        severity: Severity of a match.
        patterns: RE2 patterns, any of which matches.
        unless: Pattern of matches to ignore.
        advice: Whether a warning of the thing is harmless: "never use --no-verify".
    """

    id: str
    meaning: str
    severity: Severity
    patterns: tuple[str, ...] = ()
    unless: str = ""
    advice: bool = False

    @property
    def critical(self) -> bool:
        """Whether the rule blocks a text."""
        return self.severity is Severity.BLOCKED


BIDI: Final = Rule(
    id="bidi", meaning="turns the direction of text, so that it reads differently", severity=Severity.BLOCKED
)
TAGS: Final = Rule(id="hidden-text", meaning="contains invisible letters", severity=Severity.BLOCKED)
INVISIBLE: Final = Rule(id="invisible", meaning="contains invisible characters", severity=Severity.FLAGGED)
LOOKALIKE: Final = Rule(
    id="lookalike", meaning="mixes letters of other alphabets into words", severity=Severity.FLAGGED
)
SECRET: Final = Rule(id="secret", meaning="contains what looks like a secret", severity=Severity.FLAGGED)
BROAD: Final = Rule(
    id="broad-trigger", meaning="has a trigger that matches nearly every message", severity=Severity.FLAGGED
)
LONG: Final = Rule(id="unscanned", meaning="is too long to be scanned completely", severity=Severity.FLAGGED)
COUNTS: Final = Rule(id="counts", meaning="states many uses that no other record confirms", severity=Severity.FLAGGED)
_OTHER: Final = (BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS)
"""Rules without patterns."""


@cache
def load_rules() -> tuple[Rule, ...]:
    """All rules with patterns, most severe first; the tables are read on the first call (about 15 ms)."""
    languages = _read("languages")
    phrases = {
        "secret_requests": request_patterns(languages["secret_requests"]),
        "role_changes": tuple(map(normalize_text, languages["role_changes"])),
        "hidings": tuple(map(normalize_text, languages["hidings"])),
    }
    parts: dict[str, str] = {}
    rules: list[Rule] = []
    for name in _TABLES:
        table = _read(name)
        for part, text in table.get("parts", {}).items():
            parts[part] = _expand(text, parts)
        for fields in table["rules"]:
            patterns = [_expand(pattern, parts) for pattern in fields["patterns"]]
            for phrase in fields.get("phrases", ()):
                patterns += phrases[phrase]
            rules.append(
                Rule(
                    id=fields["id"],
                    meaning=fields["meaning"],
                    severity=Severity(fields["severity"]),
                    patterns=tuple(patterns),
                    unless=_expand(fields.get("unless", ""), parts),
                    advice=fields.get("advice", False),
                )
            )
    override = rules[0]
    foreign = (
        Rule(id=override.id, meaning=override.meaning, severity=override.severity, patterns=patterns)
        for patterns in override_patterns(languages["overrides"])
    )
    return (override, *foreign, *rules[1:])


@cache
def rule_meanings() -> dict[str, str]:
    """Meaning of each rule by ID."""
    return {rule.id: rule.meaning for rule in (*load_rules(), *_OTHER)}


def _read(name: str) -> dict[str, Any]:
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return table


def _expand(pattern: str, parts: dict[str, str]) -> str:
    """A pattern without its line breaks, with its parts in place."""
    return _PART.sub(lambda part: parts[part[1]], pattern.replace("\n", ""))
