"""Patterns for phrases in other languages that work against an agent, made from `rule_tables/languages.yaml`.

The verb, the word for "all" or "previous" and the word for "instructions" must be close together; where the verb may be
last depends on the language.
"""

from __future__ import annotations

from typing import Final

from core.scanning.normalization import normalize_text

_REACH: Final = 40
"""Maximum number of characters between verb and object."""
_VERB_LAST: Final = frozenset({"Turkish"})
"""Languages in ASCII letters that may put the verb last, as the languages of other alphabets may."""


def override_patterns(table: dict[str, list[str]]) -> list[tuple[str, ...]]:
    """Patterns of orders to ignore instructions, by language."""
    found: list[tuple[str, ...]] = []
    for language, words in table.items():
        verbs, all_or_previous, instructions = map(normalize_text, words)
        start, near = _word_start(verbs), _gap(verbs)
        both = rf"(?:(?:{all_or_previous}){near}(?:{instructions})|(?:{instructions}){near}(?:{all_or_previous}))"
        patterns = (rf"{start}(?:{verbs}){near}{both}", rf"{both}{near}(?:{verbs})")
        found.append(patterns if language in _VERB_LAST or not words[0].isascii() else patterns[:1])
    return found


def request_patterns(table: dict[str, list[str]]) -> tuple[str, ...]:
    """Patterns of requests to show secrets, one per language."""
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
