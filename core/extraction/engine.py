"""Extraction of candidate patterns from a loop, task or debug session; docs/extraction.md."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.base.record_text import strip_label
from core.config.settings import ExtractionSettings
from core.extraction.alternatives import add_alternatives
from core.extraction.approaches import find_approaches
from core.extraction.attempts import find_attempt_repairs
from core.extraction.error_fixes import find_error_patterns
from core.extraction.failures import find_anti_patterns
from core.extraction.fixes import Repair, describe_action, find_repairs, has_passed
from core.extraction.known_patterns import KnownPatterns
from core.extraction.own_reflections import find_reflected_repairs
from core.extraction.reasons import explain_missing
from core.extraction.selection import compare_with_registry, drop_broad_task, narrow_trigger, remove_duplicates
from core.extraction.templates import find_code_templates
from core.records.extractions import ALL_TYPES, Extraction, Proposal
from core.records.material import Material
from core.records.patterns import PatternType

MAX_PROPOSALS: Final = 50
"""Maximum number of proposals of one type per loop; each is compared with all others."""


def extract(
    material: Material,
    known: KnownPatterns,
    settings: ExtractionSettings,
    types: Collection[PatternType] = ALL_TYPES,
) -> Extraction:
    """Extract candidate patterns; a pure function of its arguments.

    Args:
        material: The records of a loop, task or debug session.
        known: The registry, and the errors and tasks of all loops.
        types: Pattern types to look for.
    """
    fixed = _repairs(material)[:MAX_PROPOSALS]
    proposals = remove_duplicates(_found(material, fixed, known, settings, types), settings)
    judged = (compare_with_registry(proposal, material.loop_id, known, settings) for proposal in proposals)
    return Extraction(
        source_id=material.source_id,
        proposals=add_alternatives(tuple(judged)),
        missing=tuple(explain_missing(material, proposals, fixed, settings, types)),
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
    """Return the repairs of the loop and of the attempts at its task, those with code first."""
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
