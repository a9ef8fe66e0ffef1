"""`core/scanning/rules.jsonl`: the rules of the safety scan, made of `rule_tables/*.yaml`.

In a table, `parts` are named pieces of regular expressions, which patterns of this and later tables include as
`{name}`. `rules` has the fields of `Rule`. Line breaks in a pattern are removed. `phrases` adds patterns for other
languages from `rule_tables/languages.yaml`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import yaml

from core.records.suspicions import Severity
from core.redaction.regex_table import expand_parts
from core.scanning.normalization import normalize_text
from core.scanning.rules import TABLE, Rule
from tests.reference.literals import find_literals

PAGE: Final = TABLE
_FOLDER: Final = TABLE.with_name("rule_tables")
_TABLES: Final = ("takeover", "commands", "conduct", "approval", "agent", "risks")  # most severe first
_REACH: Final = 40  # maximum number of characters between verb and object
_VERB_LAST: Final = frozenset({"Turkish"})  # languages in ASCII letters that may put the verb last


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
            unless, advice = expand_parts(fields.get("unless", ""), parts), fields.get("advice", False)
            rules.append(_rule(fields["id"], fields["meaning"], Severity(fields["severity"]), patterns, unless, advice))
    override = rules[0]
    foreign = [
        _rule(override.id, override.meaning, override.severity, patterns)
        for patterns in _override_patterns(languages["overrides"])
    ]
    return [override, *foreign, *rules[1:]]


def _rule(
    name: str, meaning: str, severity: Severity, patterns: list[str], unless: str = "", advice: bool = False
) -> Rule:
    return Rule(name, meaning, severity, tuple(patterns), unless, advice, tuple(map(find_literals, patterns)))


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
