"""Extraction from a loop, task or debug session; docs/extraction.md."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.base.record_text import strip_label
from core.config.settings import ExtractionSettings
from core.extraction.approaches import explain_no_approach, find_approaches
from core.extraction.errors import find_errors
from core.extraction.failures import find_anti_patterns
from core.extraction.fixes import Repair, describe_action, find_attempt_repairs, find_repairs, has_passed
from core.extraction.own_reflections import find_reflected_repairs
from core.extraction.repair_patterns import find_code_templates, find_error_patterns
from core.extraction.selection import (
    KnownPatterns,
    add_alternatives,
    compare_with_registry,
    drop_broad_task,
    narrow_trigger,
    remove_duplicates,
)
from core.records.extractions import ALL_TYPES, Extraction, Material, Proposal
from core.records.patterns import PatternType

MAX_PROPOSALS: Final = 50  # maximum number of proposals of one type per loop; each is compared with all others


def extract(
    material: Material, known: KnownPatterns, settings: ExtractionSettings, types: Collection[PatternType] = ALL_TYPES
) -> Extraction:
    """Extract candidate patterns of some types; a pure function of its arguments."""
    fixed = _repairs(material)[:MAX_PROPOSALS]
    proposals = remove_duplicates(_found(material, fixed, known, settings, types), settings)
    judged = (compare_with_registry(proposal, material.loop_id, known, settings) for proposal in proposals)
    return Extraction(
        source_id=material.source_id,
        proposals=add_alternatives(tuple(judged)),
        missing=tuple(_explain_missing(material, proposals, fixed, settings, types)),
    )


def _found(
    material: Material,
    fixed: list[Repair],
    known: KnownPatterns,
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[Proposal]:
    if PatternType.ERROR in types:
        for proposal, repair in find_error_patterns(material, fixed):
            yield narrow_trigger(replace(proposal, failures=_failures(material, repair)), repair.error, known, settings)
    if PatternType.SUCCESS in types:
        for proposal in find_approaches(material):
            yield drop_broad_task(proposal, known, settings)
    if PatternType.ANTI in types:
        yield from islice(find_anti_patterns(material, fixed, settings), MAX_PROPOSALS)
    if PatternType.TEMPLATE in types and settings.extract_code_templates:
        yield from find_code_templates(material, fixed)


def _repairs(material: Material) -> list[Repair]:
    """Return the repairs of the loop and of attempts, those with code first."""
    logged = (repair for attempt in reversed(material.attempts) for repair in find_attempt_repairs(attempt))
    found = (*find_repairs(material), *islice(logged, MAX_PROPOSALS), *find_reflected_repairs(material))
    return sorted(found, key=lambda repair: not repair.diff)


def _failures(material: Material, repair: Repair) -> int:
    """Count how often the same fix was tried without success."""
    tried = repair.description.casefold()
    failed = sum(describe_action(one).casefold() == tried and not has_passed(one) for one in material.iterations)
    runs = ((run, held) for one in material.sessions for run, held in zip(one.executions, one.verdicts, strict=True))
    return failed + sum(
        held is False and run.fix is not None and strip_label(run.fix.description).casefold() == tried
        for run, held in runs
    )


def _explain_missing(
    material: Material,
    proposals: Iterable[Proposal],
    repairs: Sequence[Repair],
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[str]:
    """Yield one reason for each type without proposals."""
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
    if material.errors or any(run.failures for session in material.sessions for run in session.executions):
        return True
    if any(action.has_failed for logged in material.attempts for action in logged.actions):
        return True
    return any(any(find_errors(iteration)) or iteration.failed for iteration in material.iterations)
