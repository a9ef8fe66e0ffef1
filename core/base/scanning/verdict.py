"""Effect of the scan on a text, given the policy and the decisions; descriptions, and notes that replace texts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from core.base.scanning.normalization import find_scripts, find_unused_scripts
from core.base.scanning.rules import FOREIGN_SCRIPT, rule_meanings
from core.base.scanning.scan import scan_text, sort_suspicions
from core.base.settings import BY_TYPE, ScanSettings
from core.base.text import visible_line
from core.records.patterns import Pattern, PatternType, Severity, Suspicion

if TYPE_CHECKING:
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
    """Return why these settings withhold a text that is not a pattern, or "" if they do not."""
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
    """Return whether a person here pinned this text, by scan rules that block it as those of today do."""
    return pin.approves and _blocked_since(pattern) <= pin.scan_rules


def _blocked_since(pattern: Pattern) -> int:
    """Return the version of the rules in which the last mark that blocks the text began; 1 if none does."""
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
