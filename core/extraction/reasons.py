"""Why a loop offers nothing, type by type, for a person."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from core.config.settings import ExtractionSettings
from core.extraction.approaches import why_no_approach
from core.extraction.errors import in_iteration
from core.extraction.fixes import Repair
from core.records.extractions import Proposal
from core.records.material import Material
from core.records.patterns import PatternType


def reasons_for_nothing(
    material: Material,
    proposals: Iterable[Proposal],
    repairs: Sequence[Repair],
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[str]:
    """One reason for each type that nothing was found of; what was found and refused has its own reason."""
    found = {proposal.type for proposal in proposals}
    missing = [kind for kind in PatternType if kind in types and kind not in found]
    if PatternType.ERROR in missing:
        yield "no error was fixed" if _has_error(material) else "no error was recorded"
    if PatternType.SUCCESS in missing:
        yield why_no_approach(material)
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
    """Whether any record of the material has an error."""
    if material.errors or any(run.failures for session in material.sessions for run in session.executions):
        return True
    if any(action.has_failed for logged in material.attempts for action in logged.actions):
        return True
    return any(any(in_iteration(iteration)) or iteration.failed for iteration in material.iterations)
