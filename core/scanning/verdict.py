"""Effect of the scan on a pattern, given the policy and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.config.settings import BY_TYPE, ScanSettings
from core.records.patterns import Pattern, PatternType
from core.records.suspicions import Severity, Suspicion

if TYPE_CHECKING:
    from core.records.decisions import CurationState

_BY_POLICY: Final = {"hold": Severity.HELD, "flag": Severity.FLAGGED, "block": Severity.BLOCKED}
_BY_TYPE: Final = {
    PatternType.ERROR: "error_patterns",
    PatternType.SUCCESS: "success_patterns",
    PatternType.ANTI: "anti_patterns",
    PatternType.TEMPLATE: "code_templates",
}


def find_stopping_severity(pattern: Pattern, curation: CurationState, settings: ScanSettings) -> Severity | None:
    """Return the severity that stops a pattern, unless a decision approved its text."""
    severity = highest_severity(pattern, curation, settings)
    if severity is Severity.BLOCKED and not curation.clears(pattern.id, pattern.content_hash):
        return severity
    if severity is Severity.HELD and not curation.approves(pattern.id, pattern.content_hash):
        return severity
    return None


def highest_severity(pattern: Pattern, curation: CurationState, settings: ScanSettings) -> Severity | None:
    """Return the highest severity under the policy, before decisions; None if clean."""
    found = [apply_policy(one, pattern, curation, settings) for one in pattern.suspicions]
    return min(found, key=lambda severity: severity.rank, default=None)


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
