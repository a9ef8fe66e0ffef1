"""From what a loop left behind to the patterns that it offers: steps 2 to 6 of (0) Pattern Extraction."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from core.base.record_text import strip_label
from core.config.settings import ExtractionSettings
from core.extraction.alternatives import with_alternatives
from core.extraction.approaches import approaches
from core.extraction.attempts import attempt_repairs
from core.extraction.error_fixes import error_patterns
from core.extraction.failures import anti_patterns
from core.extraction.fixes import Repair, action, passes, repairs
from core.extraction.known_patterns import Known
from core.extraction.own_reflections import reflected_repairs
from core.extraction.reasons import reasons_for_nothing
from core.extraction.selection import compared, each_once, narrowed, without_broad_task
from core.extraction.templates import code_templates
from core.records.extractions import ALL_TYPES, Extraction, Proposal
from core.records.material import Material
from core.records.patterns import PatternType

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
    fixed = _repairs(material)[:MAX_PROPOSALS]
    proposals = each_once(_found(material, fixed, known, settings, types), settings)
    judged = (compared(proposal, material.loop_id, known, settings) for proposal in proposals)
    return Extraction(
        source_id=material.source_id,
        proposals=with_alternatives(tuple(judged)),
        missing=tuple(reasons_for_nothing(material, proposals, fixed, settings, types)),
    )


def _found(
    material: Material,
    fixed: list[Repair],
    known: Known,
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[Proposal]:
    if PatternType.ERROR in types:
        for proposal, repair in error_patterns(material, fixed):
            yield narrowed(replace(proposal, failures=_failures(material, repair)), repair.error, known, settings)
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
    found = (*repairs(material), *islice(logged, MAX_PROPOSALS), *reflected_repairs(material))
    return sorted(found, key=lambda repair: not repair.diff)


def _failures(material: Material, repair: Repair) -> int:
    """How often the same fix was tried in vain."""
    tried = repair.description.casefold()
    missed = sum(action(one).casefold() == tried and not passes(one) for one in material.iterations)
    runs = ((run, held) for one in material.sessions for run, held in zip(one.executions, one.verdicts, strict=True))
    return missed + sum(
        held is False and run.fix is not None and strip_label(run.fix.description).casefold() == tried
        for run, held in runs
    )
