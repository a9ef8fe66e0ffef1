"""The last gate: what the finished context says that no pattern in it says by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from core.records.patterns import Pattern
from core.scanning.normal import normal
from core.scanning.rules import MEANINGS
from core.scanning.scan import engine, matches
from core.secrets import masked

_LAYOUT: Final = re.compile(
    r"^ *(?:#{2,3} [A-Z][A-Za-z -]{0,40}$|\d{1,2}\. |- Source: [^\n]*$|```\w*$"
    r"|- (?:(?:Error|Fix|Template|Steps|Use|Better alternative): ?)?)|\*\*(?: \([^()\n]{0,60}\)$)?|\\(?=[`<#*\[])",
    re.MULTILINE,
)
"""What our own rendering adds to the patterns' texts."""
_LAYOUT_RULE: Final = "fake-layout"


def put_together(context: str, patterns: Iterable[Pattern]) -> str:
    """What a finished context does that none of its patterns does by itself, in words; "" if there is nothing.

    What a single pattern says has been judged already, by the scan of its text or by a person.
    """
    plain = re.sub(r"\s+", " ", _LAYOUT.sub(" ", context))
    legible = normal(plain)
    if engine().is_clean(legible):
        return ""
    own: Counter[str] = Counter()
    for pattern in patterns:
        # What a pattern says where the context has left it out allows nothing.
        own.update(rule for rule, words in _own(_told(pattern)) if words in legible)
    for rule, count in Counter(rule for rule, _ in matches(plain)).items():
        if count > own[rule] and rule != _LAYOUT_RULE:
            return MEANINGS[rule]
    return ""


@lru_cache(1024)
def _own(text: str) -> tuple[tuple[str, str], ...]:
    return matches(masked(text))


def _told(pattern: Pattern) -> str:
    """All that a context may hold of a pattern, joined as the context joins it."""
    loops = (source.loop_id for source in pattern.source_loops[:1])
    return re.sub(r"\s+", " ", "\n".join(filter(None, (*_rendered(pattern), *loops))))


def _rendered(pattern: Pattern) -> Iterator[str]:
    yield from (pattern.title, pattern.error_pattern, pattern.description)
    yield from (*pattern.steps, pattern.better_alternative, pattern.better_pattern_id, pattern.template_code)
