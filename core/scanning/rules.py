r"""The rules of the safety scan, loaded from `rule_tables/*.yaml`.

In a table, `parts` are named pieces of regular expressions, which patterns of this and later tables include as
`{name}`. `rules` has the fields of `Rule`. Line breaks in a pattern are removed. `short` before a pattern marks one
that can match without a literal part of three characters. `phrases` adds patterns for other languages from
`rule_tables/languages.yaml`.

RE2 has no look-around, so the exceptions of a rule are in `unless`. `\W+(?:\w+\W+){0,3}?` is a gap of few words.
Patterns match case-insensitively in normalized text, see `core.scanning.normalization`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Final

import yaml
from msgspec import Struct

from core.records.suspicions import Severity
from core.redaction.regex_table import expand_parts
from core.scanning.normalization import normalize_text

_TABLES: Final = ("takeover", "commands", "conduct", "approval", "agent", "risks")  # most severe first
_FOLDER: Final = Path(__file__).with_name("rule_tables")
_REACH: Final = 40  # maximum number of characters between verb and object
_VERB_LAST: Final = frozenset({"Turkish"})  # languages in ASCII letters that may put the verb last


class Rule(Struct, frozen=True):
    """Kind of harm that a text could do to an agent."""

    id: str  # name in files and JSON
    meaning: str  # what the text does, in words that follow "this text"
    severity: Severity  # severity of a match
    patterns: tuple[str, ...] = ()  # RE2 patterns, any of which matches
    unless: str = ""  # pattern of matches to ignore
    advice: bool = False  # whether a warning of the thing is harmless: "never use --no-verify"
    short: frozenset[str] = frozenset()  # those of `patterns` that can match without a literal part; only for speed

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
_HIDING: Final = (
    r"(?:\b[^\W_][ \t._*-]{1,8}){7}|[A-Za-z0-9+/]{24}|(?:[\\]x[0-9a-f]{2}){6}|(?:[\\]u00[0-9a-f]{2}){4}"
    r"|(?:%[0-9a-f]{2}){6}|(?:&#x?[0-9a-f]{2,4};){4}|\b(?:[a-z]*[013457@$][a-z013457@$]*[ \t]+){3}"
)
HIDING: Final = Rule("hiding", "may hide text", Severity.FLAGGED, (_HIDING,), short=frozenset((_HIDING,)))
"""Signs of hidden text: spaced-out words, base64, escapes, digits for letters. Not a suspicion by itself."""
_OTHER: Final = (BIDI, TAGS, INVISIBLE, LOOKALIKE, SECRET, BROAD, LONG, COUNTS)  # rules without patterns


@cache
def load_rules() -> tuple[Rule, ...]:
    """Return all rules with patterns, most severe first; loads them once (15 ms)."""
    languages = _read("languages")
    phrases = {
        "secret_requests": _request_patterns(languages["secret_requests"]),
        "role_changes": tuple(map(normalize_text, languages["role_changes"])),
        "hidings": tuple(map(normalize_text, languages["hidings"])),
    }
    parts: dict[str, str] = {}
    rules: list[Rule] = []
    for name in _TABLES:
        table = _read(name)
        for part, text in table.get("parts", {}).items():
            parts[part] = expand_parts(text, parts)
        for fields in table["rules"]:
            patterns: list[str] = []
            short: set[str] = set()
            for entry in fields["patterns"]:
                is_short = isinstance(entry, dict)
                patterns.append(expand_parts(entry["short"] if is_short else entry, parts))
                short.update(patterns[-1:] if is_short else ())
            for phrase in fields.get("phrases", ()):
                patterns += phrases[phrase]
            unless, advice = expand_parts(fields.get("unless", ""), parts), fields.get("advice", False)
            named = fields["id"], fields["meaning"], Severity(fields["severity"])
            rules.append(Rule(*named, tuple(patterns), unless, advice, frozenset(short)))
    override = rules[0]
    foreign = (
        Rule(override.id, override.meaning, override.severity, patterns)
        for patterns in _override_patterns(languages["overrides"])
    )
    return (override, *foreign, *rules[1:])


@cache
def rule_meanings() -> dict[str, str]:
    return {rule.id: rule.meaning for rule in (*load_rules(), *_OTHER)}


def _read(name: str) -> dict[str, Any]:
    text = (_FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return table


def _override_patterns(table: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Build patterns of orders to ignore instructions, by language and word order."""
    found: list[tuple[str, ...]] = []
    for language, words in table.items():
        verbs, all_or_previous, instructions = map(normalize_text, words)
        start, near = _word_start(verbs), _gap(verbs)
        both = rf"(?:(?:{all_or_previous}){near}(?:{instructions})|(?:{instructions}){near}(?:{all_or_previous}))"
        patterns = (rf"{start}(?:{verbs}){near}{both}", rf"{both}{near}(?:{verbs})")
        found.append(patterns if language in _VERB_LAST or not words[0].isascii() else patterns[:1])
    return found


def _request_patterns(table: dict[str, list[str]]) -> tuple[str, ...]:
    """Build patterns of requests to show secrets, one per language."""
    found = []
    for words in table.values():
        verbs, secrets = map(normalize_text, words)
        start, near = _word_start(verbs), _gap(verbs)
        verb_last = "" if start else rf"|(?:{secrets}){near}(?:{verbs})"
        found.append(rf"{start}(?:{verbs}){near}(?:{secrets}){verb_last}")
    return tuple(found)


def _word_start(verbs: str) -> str:
    # RE2's \b knows ASCII letters only; words in other alphabets are matched anywhere.
    return r"\b" if verbs.isascii() else ""


def _gap(verbs: str) -> str:
    return rf"[^.\n。！？]{{0,{_REACH}}}?{_word_start(verbs)}"
