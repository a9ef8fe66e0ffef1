"""From what a loop left behind to the patterns that it offers: steps 2 to 6 of (0) Pattern Extraction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from core.extraction.approaches import approaches
from core.extraction.attempts import attempt_repairs
from core.extraction.error_fixes import error_patterns
from core.extraction.failures import anti_patterns
from core.extraction.fixes import Repair, repairs
from core.extraction.judging import compared, each_once, narrowed, without_broad_task
from core.extraction.known import Known
from core.extraction.proposals import ALL_TYPES, Extraction, Proposal
from core.extraction.templates import code_templates
from core.records.material import Material
from core.records.patterns import PatternType
from core.settings import ExtractionSettings

MAX_PROPOSALS: Final = 50
"""Most proposals of one type and loop: nobody reviews more, and each is compared with all others."""


def extract(
    material: Material,
    known: Known,
    settings: ExtractionSettings,
    types: Collection[PatternType] = ALL_TYPES,
) -> Extraction:
    """What a loop, task or debug session offers. Nothing is read or written; the same material gives the same offer.

    Args:
        material: What it left behind.
        known: What the project knows already.
        settings: Thresholds, and whether templates are made and duplicates merged.
        types: What to look for.
    """
    proposals = each_once(_found(material, known, settings, types), settings)
    return Extraction(
        source_id=material.source_id,
        proposals=tuple(compared(proposal, material.loop_id, known, settings) for proposal in proposals),
    )


def _found(
    material: Material, known: Known, settings: ExtractionSettings, types: Collection[PatternType]
) -> Iterator[Proposal]:
    fixed = _repairs(material)[:MAX_PROPOSALS]
    if PatternType.ERROR in types:
        for proposal, repair in error_patterns(material, fixed):
            yield narrowed(proposal, repair.error, known, settings)
    if PatternType.SUCCESS in types:
        for proposal in approaches(material):
            yield without_broad_task(proposal, known, settings)
    if PatternType.ANTI in types:
        yield from islice(anti_patterns(material, fixed, settings), MAX_PROPOSALS)
    if PatternType.TEMPLATE in types and settings.extract_code_templates:
        yield from code_templates(material, fixed)


def _repairs(material: Material) -> list[Repair]:
    """Those of the loop and of the attempts at its task, the newest of these first; with code before without."""
    logged = (repair for attempt in reversed(material.attempts) for repair in attempt_repairs(attempt))
    return sorted((*repairs(material), *islice(logged, MAX_PROPOSALS)), key=lambda repair: not repair.diff)
