"""Explains why nothing was extracted, for each pattern type."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from core.config.settings import ExtractionSettings
from core.extraction.approaches import explain_no_approach
from core.extraction.errors import find_errors
from core.extraction.fixes import Repair
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType


def explain_missing(
    material: Material,
    proposals: Iterable[Proposal],
    repairs: Sequence[Repair],
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[str]:
    """Yield one reason for each type without proposals; a refused proposal has its own reason."""
    found = {proposal.type for proposal in proposals}
    missing = [kind for kind in PatternType if kind in types and kind not in found]
    if PatternType.ERROR in missing:
        yield "no error was fixed" if _has_error(material) else "no error was recorded"
    if PatternType.SUCCESS in missing:
        yield explain_no_approach(material)
    if PatternType.ANTI in missing:
        yield f"no error came {settings.repeated_error_count} times and no approach was recorded as wrong"
    if PatternType.TEMPLATE in missing:
        if not settings.extract_code_templates:
            yield "code templates are switched off (extraction.extract_code_templates)"
        elif repairs and not any(repair.diff for repair in repairs):
            yield "no fix has recorded its change (diff)"
        elif repairs:
            yield "no fix adds code that could be generalised"


def _has_error(material: Material) -> bool:
    """Return whether any record has an error."""
    if material.errors or any(run.failures for session in material.sessions for run in session.executions):
        return True
    if any(action.has_failed for logged in material.attempts for action in logged.actions):
        return True
    return any(any(find_errors(iteration)) or iteration.failed for iteration in material.iterations)
