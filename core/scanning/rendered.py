"""The last gate: what the finished context says that no pattern in it says by itself."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import product
from typing import Final

from core.records.patterns import Pattern, PatternType
from core.scanning.normal import readings
from core.scanning.rules import MEANINGS
from core.scanning.scan import engine, matches, scan_text
from core.scanning.telling import left_out, meaning
from core.secrets import masked
from core.text import visible_line

_LABEL: Final = (
    r"(?:Error|Fix|Template|Steps|Use|Better alternative|Cause|Strategy|Session|Reason|Approach|Action item|Worked"
    r"|Did not work|Suggested|Learning(?: \(drafted from the log\))?): ?"
)
_LAYOUT: Final = re.compile(
    r"^ *(?:#{2,3} [A-Z][A-Za-z -]{0,40}(?:\d+ \([a-z ]{1,20}\))?$|\d{1,2}\. |- Source: [^\n]*$|```\w*$"
    rf"|- (?:{_LABEL})?)|\*\*(?: \([^()\n]{{0,60}}\)$)?|\\(?=[`<#*\[])| \((?:not )?verified\)$| \(did not help\)$",
    re.MULTILINE,
)
"""What our own rendering adds to the texts."""
_ITEM: Final = re.compile(rf" *(?:- (?:{_LABEL})?|\d{{1,2}}\. )")
"""How a line begins that holds a text from a file."""
_SPAN: Final = 2_000
"""Characters before a line in which what it completes may have begun; no rule reaches across so many."""
_LAYOUT_RULE: Final = "fake-layout"


def put_together(context: str, patterns: Iterable[Pattern]) -> str:
    """What a finished context does that none of its patterns does by itself, in words; "" if there is nothing.

    What a single pattern says has been judged already, by the scan of its text or by a person.
    """
    plain = _without_layout(context)
    legible = "\n".join(readings(plain))
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


def when_cut(pattern: Pattern, limit: int) -> str:
    """What a pattern does once its fields are cut to `limit` characters, and does not as a whole, in words.

    A warning behind the cut warns nobody; what is dangerous as a whole has been judged, by a person if it is here.
    """
    if pattern.is_critical:
        return ""
    anti = pattern.type is PatternType.ANTI
    named = [pattern.title, pattern.description]
    told = [pattern.error_pattern, *pattern.steps, pattern.better_alternative, *pattern.template_code.split("\n")]
    for texts, avoided in ((named, anti), (told, False)):
        for text in texts:
            if len(text) > limit and (does := _cut_to(text, limit, avoided)):
                return does
    return ""


@lru_cache(1024)
def _cut_to(text: str, limit: int, avoided: bool) -> str:
    suspicions = scan_text(visible_line(text.strip(), limit), avoided=avoided)
    return next((meaning(one) for one in suspicions if one.critical), "")


def without_put_together(text: str, before: str = "") -> str:
    """A finished text without the lines that do with those before them what none does by itself.

    What a single line says has been judged already. Only lines that are items of a list are left out, under the number
    or label that they have.

    Args:
        text: Finished, of lines.
        before: What precedes it and stays as it is.
    """
    read = _without_layout(before)[-_SPAN:]
    if all(map(engine().is_clean, readings(f"{read} {_without_layout(text)}"))):
        return text
    kept: list[str] = []
    for line in text.split("\n"):
        item = _ITEM.match(line)
        own = _without_layout(line)
        if item and (does := _completed(read, own)):
            kept.append(f"{item[0]}{left_out(f'with the lines before it {does}')}")
        else:
            kept.append(line)
            read = f"{read} {own}".strip()[-_SPAN:]
    return "\n".join(kept)


def completed_by(context: str, before: str) -> str:
    """What a finished context does with the text before it and neither does by itself, in words; "" for nothing."""
    return _completed(_without_layout(before)[-_SPAN:], _without_layout(context)[:_SPAN])


def _without_layout(text: str) -> str:
    return re.sub(r"\s+", " ", _LAYOUT.sub(" ", text)).strip()


def _completed(before: str, line: str) -> str:
    """What a line does with the text before it that neither does by itself."""
    made = engine()
    for begun, more in product(readings(before), readings(line)):
        text, edge = f"{begun} {more}", len(begun)
        for rule, pattern in made.finds(text):
            if not rule.critical or rule.id == _LAYOUT_RULE:
                continue
            for start, end in made.places(rule, pattern, text):
                across = start < edge and end > edge + 1
                parts = (begun[start:], more[: max(end - edge - 1, 0)])
                if across and not any(list(made.places(rule, pattern, part)) for part in parts):
                    return MEANINGS[rule.id]
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
