"""Effect of the scan on a pattern, given the policy and the decisions."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from core.base.scanning.normalization import find_unused_scripts
from core.base.scanning.rules import FOREIGN_SCRIPT
from core.base.scanning.scan import sort_suspicions
from core.base.settings import BY_TYPE, ScanSettings
from core.records.patterns import Pattern, PatternType, Severity, Suspicion

if TYPE_CHECKING:
    from core.records.decisions import CurationState, Pin

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
