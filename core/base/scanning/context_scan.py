"""Scan of a rendered context for harm by combination (docs/safety.md#context)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING, Final

from core.base.masking import mask_secrets
from core.base.prompt_text import BLOCK_LINE
from core.base.regexes import lazy_regex
from core.base.scanning.engine import get_engine
from core.base.scanning.normalization import list_readings
from core.base.scanning.scan import find_matches, is_clean, scan_text
from core.base.scanning.verdict import describe_rule, withheld_note
from core.base.text import visible_line
from core.records.patterns import Pattern, PatternType, Severity, Suspicion

if TYPE_CHECKING:
    from core.base.scanning.rules import Rule

_LABEL: Final = (
    r"(?:Error|Fix|Template|Steps|Use|Better alternative|Cause|Strategy|Session|Reason|Approach|Action item|Worked"
    r"|Did not work|Suggested|Learning(?: \(drafted from the log\))?): ?"
)
_LAYOUT: Final = lazy_regex(
    r"^ *(?:#{2,3} [A-Z][A-Za-z -]{0,40}(?:\d+ \([a-z ]{1,20}\))?$|\d{1,2}\. |- Source: [^\n]*$|```\w*$"
    rf"|- (?:{_LABEL})?)|^{BLOCK_LINE}$"
    r"|\*\*(?: \([^()\n]{0,60}\)$)?|\\(?=[`<#*\[])| \((?:not )?verified\)$| \(did not help\)$",
    re.MULTILINE,
)  # layout that the rendering adds to texts
_ITEM: Final = lazy_regex(rf" *(?:- (?:{_LABEL})?|\d{{1,2}}\. )")  # start of a line with a text from a file
_SPAN: Final = 2_000  # characters before a line in which a match may begin; no rule spans more
_LAYOUT_RULE: Final = "fake-layout"


def find_combined_harm(context: str, patterns: Iterable[Pattern], *, orders: bool = True) -> str:
    """Describe harm that a context contains although no single pattern does; "" if none.

    The scan or a person judged the text of each pattern before. `orders` is whether rules of severity `held` count, by
    the policy for these texts.
    """
    plain, readings = _read(context)
    if not readings:
        return ""
    own: Counter[Rule] = Counter()
    for pattern in patterns:
        # A match in a part of a pattern that the context left out does not count.
        own.update(rule for rule, words in _own(_injected_text(pattern)) if words in readings)
    for rule, count in Counter(rule for rule, _ in find_matches(plain)).items():
        if count > own[rule] and rule.id != _LAYOUT_RULE and _counts(rule.severity, orders):
            return rule.meaning
    return ""


@lru_cache(512)  # forecasts compare many contexts, most of them equal
def _read(context: str) -> tuple[str, str]:
    """Return a context without layout, and its readings, "" if no rule matches them."""
    plain = _without_layout(context)
    readings = "\n".join(list_readings(plain))
    return plain, "" if is_clean(readings) else readings


def _counts(severity: Severity, orders: bool) -> bool:
    return severity is Severity.BLOCKED or (orders and severity is Severity.HELD)


def find_harm_when_cut(pattern: Pattern, limit: int, *, orders: bool = True) -> str:
    """Describe harm of a pattern whose fields are cut to `limit`; "" if none."""
    judged = min((one.severity.rank for one in pattern.suspicions), default=Severity.FLAGGED.rank)
    anti = pattern.type is PatternType.ANTI
    named = [pattern.title, pattern.description, pattern.use_case]
    code = (*pattern.template_code.split("\n"), *pattern.diff_pattern.split("\n"))
    advice = [pattern.error_message or pattern.error_pattern, *pattern.steps, pattern.better_alternative, *code]
    for texts, avoided in ((named, anti), (advice, False)):
        for text in texts:
            for one in _scan_cut(text, limit, avoided) if len(text) > limit else ():
                if one.severity.rank < judged and _counts(one.severity, orders):
                    return describe_rule(one)
    return ""


@lru_cache(1024)
def _scan_cut(text: str, limit: int, avoided: bool) -> tuple[Suspicion, ...]:
    return scan_text(visible_line(text.strip(), limit), avoided=avoided)


def withhold_combined_harm(text: str, before: str = "", *, orders: bool = True) -> str:
    """Replace lines that do harm only together with the lines before them.

    Each line was judged before. Only list items are replaced; their number or label stays. `before` is preceding text,
    which is not changed.
    """
    read = _without_layout(before)[-_SPAN:]
    if all(map(is_clean, list_readings(f"{read} {_without_layout(text)}"))):
        return text
    lines: list[str] = []
    for line in text.split("\n"):
        item = _ITEM.match(line)
        own = _without_layout(line)
        if item and (does := _find_across(read, own, orders)):
            lines.append(f"{item[0]}{withheld_note(f'together with the lines before it {does}')}")
        else:
            lines.append(line)
            read = f"{read} {own}".strip()[-_SPAN:]
    return "\n".join(lines)


@lru_cache(512)
def find_completed_harm(context: str, before: str, *, orders: bool = True) -> str:
    """Describe harm that only a context with the text before it does; "" if none."""
    return _find_across(_without_layout(before)[-_SPAN:], _without_layout(context)[:_SPAN], orders)


def _without_layout(text: str) -> str:
    return re.sub(r"\s+", " ", _LAYOUT.sub(" ", text)).strip()


def _find_across(before: str, line: str, orders: bool) -> str:
    """Describe the harm of a line together with the text before it."""
    made = get_engine()
    for begun, more in product(list_readings(before), list_readings(line)):
        text, edge = f"{begun} {more}", len(begun)
        for rule, pattern in made.finds(text):
            if not _counts(rule.severity, orders) or rule.id == _LAYOUT_RULE:
                continue
            for start, end in made.places(rule, pattern, text):
                across = start < edge and end > edge + 1
                parts = (begun[start:], more[: max(end - edge - 1, 0)])
                if across and not any(list(made.places(rule, pattern, part)) for part in parts):
                    return rule.meaning
    return ""


@lru_cache(1024)
def _own(text: str) -> tuple[tuple[Rule, str], ...]:
    return find_matches(mask_secrets(text))


def _injected_text(pattern: Pattern) -> str:
    """Join all fields of a pattern that a context may contain, as in the context."""
    loops = (source.loop_id for source in pattern.source_loops[:1])
    named = (pattern.title, pattern.error_message or pattern.error_pattern, pattern.description, pattern.use_case)
    better = (pattern.better_alternative, pattern.better_pattern_id, pattern.template_code, pattern.diff_pattern)
    return re.sub(r"\s+", " ", "\n".join(filter(None, (*named, *pattern.steps, *better, *loops))))
