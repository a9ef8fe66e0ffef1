"""`core/base/scanning/rules.jsonl`: the rules of the safety scan, made of `rule_tables/*.yaml`.

In a table, `parts` are named pieces of regular expressions, which patterns of this and later tables include as
`{name}`. `rules` has the fields of `Rule`. Line breaks in a pattern are removed. `phrases` adds patterns for other
languages from `rule_tables/languages.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec
import yaml

from core.base.regexes import expand_parts
from core.base.scanning.engine import TABLE, Rule
from core.base.scanning.normalization import normalize_text
from core.records.patterns import Severity
from tests.reference.literals import find_literals

PAGE: Final = TABLE
_FOLDER: Final = TABLE.with_name("rule_tables")
_TABLES: Final = ("takeover", "commands", "conduct", "approval", "agent", "disguise", "risks")  # most severe first
_REACH: Final = 40  # maximum number of characters between verb and object
_VERB_LAST: Final = frozenset({"Turkish"})  # languages in ASCII letters that may put the verb last
_MIXED_VERB_LAST: Final = frozenset({"Turkish", "German", "Japanese", "Korean"})
_MIXED_SINCE: Final = 2  # version of the rules that added phrases of mixed languages
_NEGATED: Final = (
    r"^(?:(?:no|nao|non|nie|ne|n|не)\W|不要|请勿|勿|别)|\b(?:nicht|pas|niet|kein\w*|nooit|nunca|jamais|mai)\W"
    r"|(?:しない|ないで|지\s?마)"
)
"""A negation in a phrase of mixed languages: "vergiss nicht die Regeln"."""


def render_page() -> str:
    """Encode one rule per line, most severe first."""
    return msgspec.json.Encoder().encode_lines(_read_rules()).decode()


def _read_rules() -> list[Rule]:
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
            patterns = [expand_parts(text, parts) for text in fields["patterns"]]
            for phrase in fields.get("phrases", ()):
                patterns += phrases[phrase]
            unless = expand_parts(fields.get("unless", ""), parts)
            flags = {name: fields[name] for name in ("advice", "cited", "since") if name in fields}
            rules.append(_rule(fields["id"], fields["meaning"], fields["severity"], patterns, unless, **flags))
    override = rules[0]
    foreign = [
        _rule(override.id, override.meaning, override.severity, patterns, cited=True)
        for patterns in _override_patterns(languages["overrides"])
    ]
    mixed = _mixed_patterns(languages["mixed_overrides"], languages["english_overrides"])
    held = _rule(override.id, override.meaning, "held", mixed, _NEGATED, cited=True, since=_MIXED_SINCE)
    return [override, *foreign, *rules[1:], held]


def _rule(name: str, meaning: str, severity: str, patterns: list[str], unless: str = "", **more: Any) -> Rule:
    literals = tuple(map(find_literals, patterns))
    return Rule(name, meaning, Severity(severity), tuple(patterns), unless, literals=literals, **more)


def _read(name: str) -> dict[str, Any]:
    table: dict[str, Any] = yaml.safe_load((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return table


def _override_patterns(table: dict[str, list[str]]) -> list[list[str]]:
    """Build patterns of orders to ignore instructions, by language and word order."""
    found: list[list[str]] = []
    for language, words in table.items():
        verbs, all_or_previous, instructions = map(normalize_text, words)
        start, near = _word_start(verbs), _gap(verbs)
        both = rf"(?:(?:{all_or_previous}){near}(?:{instructions})|(?:{instructions}){near}(?:{all_or_previous}))"
        patterns = [rf"{start}(?:{verbs}){near}{both}", rf"{both}{near}(?:{verbs})"]
        found.append(patterns if language in _VERB_LAST or not words[0].isascii() else patterns[:1])
    return found


def _mixed_patterns(table: dict[str, list[str]], english: list[str]) -> list[str]:
    """Build patterns of override phrases whose verb and object may be of different languages."""
    latin = {name: both for name, both in table.items() if normalize_text(both[0]).isascii()}
    other = {name: both for name, both in table.items() if name not in latin}
    verbs, objects = (_either(words[part] for words in latin.values()) for part in (0, 1))
    other_verbs, other_objects = (_either(words[part] for words in other.values()) for part in (0, 1))
    last, other_last = (
        _either(found[name][0] for name in found if name in _MIXED_VERB_LAST) for found in (latin, other)
    )
    english_verbs, english_objects = english
    negation, gap, end = r"(?:\b(?:no|nao|non|nie|ne|n)\W+)?", rf"\W[^.\n。！？]{{0,{_REACH}}}?", r"\b"
    near = rf"[^.\n。！？]{{0,{_REACH}}}?"
    not_latin = r"(?:не\W+|不要|请勿|勿|别)?"
    return [
        rf"{negation}\b(?:{verbs}){gap}\b(?:{objects}|{english_objects}){end}",
        rf"{negation}\b(?:{english_verbs}){gap}\b(?:{objects}){end}",
        rf"{negation}\b(?:{verbs}|{english_verbs}){gap}(?:{other_objects})",
        rf"{not_latin}(?:{other_verbs}){near}(?:{other_objects}|{objects}|{english_objects})",
        rf"(?:{other_objects}|{english_objects}){near}(?:{other_last})(?:し?ないで|지\s?마)?",
        rf"\b(?:{objects}){gap}\b(?:{last}){end}",
    ]


def _either(words: Iterable[str]) -> str:
    return normalize_text("|".join(words))


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
