"""Effect of the scan on a text by policy and decisions; notes that replace texts.

A rendered context is also scanned for harm by combination (docs/safety.md#context).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Final

from core.base.masking import mask_secrets
from core.base.prompt_text import BLOCK_LINE
from core.base.regexes import lazy_regex
from core.base.scanning.engine import FOREIGN_SCRIPT, get_engine, rule_meanings
from core.base.scanning.normalization import find_scripts, find_unused_scripts, list_readings
from core.base.scanning.scan import find_matches, is_clean, scan_text, sort_suspicions
from core.base.settings import BY_TYPE, ScanSettings
from core.base.text import visible_line
from core.records.patterns import Pattern, PatternType, Severity, Suspicion

if TYPE_CHECKING:
    from core.base.scanning.engine import Rule
    from core.base.settings import (
        Settings,
    )
    from core.records.decisions import (
        CurationState,
        Pin,
    )


SEVERITY_WORDS: Final = {Severity.BLOCKED: "critical", Severity.HELD: "order", Severity.FLAGGED: "suspect"}
"""Word for a severity in front of a description."""
_MOST: Final = 3  # rules named in one line
_EXCERPT: Final = 60


def describe_rule(suspicion: Suspicion) -> str:
    """Describe what a text does, in words that follow "this text"."""
    return rule_meanings().get(suspicion.rule, visible_line(suspicion.rule, 40))


def describe_suspicions(suspicions: Iterable[Suspicion]) -> str:
    """Describe the most severe suspicions, in words that follow "this text"."""
    found = tuple(suspicions)
    worst = min((one.severity.rank for one in found), default=0)
    severe = [one for one in found if one.severity.rank == worst]
    parts = []
    for one in severe[:_MOST]:
        excerpt = visible_line(" ".join(one.excerpt.split()), _EXCERPT)
        parts.append(f'{describe_rule(one)} ("{excerpt}")' if excerpt else describe_rule(one))
    return ", ".join(parts) + (f", and {len(severe) - _MOST} more" if len(severe) > _MOST else "")


def find_withhold_reason(
    text: str,
    shown: Callable[[str], str] = str,
    *,
    orders: bool = True,
    avoided: bool = False,
    happened: bool = False,
    used_scripts: Collection[str] | None = None,
) -> str:
    """Return why to withhold a text that is not a pattern, or "" if it is safe.

    The reason follows "this text". Scans the text and its rendered form, because a cut may remove a warning, and joined
    lines may form an order. `shown` renders a text for the agent. `orders` is whether texts that give orders are
    withheld: `settings.scan.holds_other_texts`. See `scan_text` for `avoided` and `happened`. `used_scripts` are the
    scripts that the project uses besides Latin; a text in another one is treated like an order. None allows all.
    """
    for version in dict.fromkeys((text, shown(text))) if text else ():
        for one in scan_text(version, avoided=avoided, happened=happened)[:1]:
            if one.critical or (orders and one.severity.stops):
                return describe_rule(one)
    if orders and used_scripts is not None and find_unused_scripts(find_scripts(text), used_scripts):
        return FOREIGN_SCRIPT.meaning
    return ""


def describe_danger(text: str, settings: Settings) -> str:
    """Return why settings withhold a text that is not a pattern; "" if they do not."""
    shown = partial(visible_line, limit=settings.injection.max_field_chars)
    return find_withhold_reason(text, shown, orders=settings.scan.holds_other_texts)


def render_if_safe(
    text: str, shown: Callable[[str], str] = str, *, orders: bool = True, avoided: bool = False, happened: bool = False
) -> str:
    """Return `shown(text)`, or a note if `find_withhold_reason` returns a reason."""
    does = find_withhold_reason(text, shown, orders=orders, avoided=avoided, happened=happened)
    if does:
        return shown(withheld_note(does))
    return shown(text) if text else ""


def withheld_note(does: str) -> str:
    """Format the note that replaces a withheld text."""
    return f"(left out: this text {does})"


_BY_POLICY: Final = {"hold": Severity.HELD, "flag": Severity.FLAGGED, "block": Severity.BLOCKED}
_BY_TYPE: Final = {
    PatternType.ERROR: "error_patterns",
    PatternType.SUCCESS: "success_patterns",
    PatternType.ANTI: "anti_patterns",
    PatternType.TEMPLATE: "code_templates",
}


def find_stopping_severity(
    pattern: Pattern, curation: CurationState, settings: ScanSettings, used_scripts: Collection[str] = ()
) -> Severity | None:
    """Return the severity that stops a pattern, unless a decision approved its text.

    `used_scripts`: see `list_suspicions`. A text that later rules than those of its approval block is stopped again.
    """
    severity = highest_severity(pattern, curation, settings, used_scripts)
    if severity is Severity.BLOCKED and not curation.clears(pattern.id, pattern.content_hash, _blocked_since(pattern)):
        return severity
    if severity is Severity.HELD and not curation.approves(pattern.id, pattern.content_hash):
        return severity
    return None


def pin_covers(pin: Pin, pattern: Pattern) -> bool:
    """Return whether a person here pinned this text under rules that block it as now."""
    return pin.approves and _blocked_since(pattern) <= pin.scan_rules


def _blocked_since(pattern: Pattern) -> int:
    """Return the rules' version in which the newest blocking mark began; 1 if none."""
    return max((one.since for one in pattern.suspicions if one.severity is Severity.BLOCKED), default=1)


def highest_severity(
    pattern: Pattern, curation: CurationState, settings: ScanSettings, used_scripts: Collection[str] = ()
) -> Severity | None:
    """Return the highest severity under the policy, before decisions; None if clean."""
    suspicions = list_suspicions(pattern, curation, used_scripts)
    found = [apply_policy(one, pattern, curation, settings) for one in suspicions]
    return min(found, key=lambda severity: severity.rank, default=None)


def list_suspicions(
    pattern: Pattern, curation: CurationState, used_scripts: Collection[str] = ()
) -> tuple[Suspicion, ...]:
    """Return the scan results of a pattern in its project, the most severe first.

    The project uses Latin letters, `used_scripts`, and the scripts of texts that a person approved.
    """
    foreign = find_unused_scripts(pattern.scripts, {*used_scripts, *curation.scripts}) if pattern.scripts else ()
    if not foreign:
        return pattern.suspicions
    rule = FOREIGN_SCRIPT
    one = Suspicion(rule.id, rule.severity, "", ", ".join(foreign), rule.since)
    return sort_suspicions((*pattern.suspicions, one))


def stops_orders(pattern: Pattern, curation: CurationState, settings: ScanSettings) -> bool:
    """Return whether the policy withholds orders in texts of this type and source."""
    return _order_severity(pattern, curation, settings).stops


def apply_policy(one: Suspicion, pattern: Pattern, curation: CurationState, settings: ScanSettings) -> Severity:
    """Return the severity of a suspicion; the policy replaces the severity `held`."""
    return _order_severity(pattern, curation, settings) if one.severity is Severity.HELD else one.severity


def _order_severity(pattern: Pattern, curation: CurationState, settings: ScanSettings) -> Severity:
    origin = curation.origin(pattern.id)
    policy: str = getattr(settings, origin) if origin else BY_TYPE
    return _BY_POLICY[getattr(settings, _BY_TYPE[pattern.type]) if policy == BY_TYPE else policy]


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
    """Describe harm of a context that no single pattern has; "" if there is none.

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
