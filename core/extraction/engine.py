"""Extraction from a loop, task or debug session; docs/extraction.md."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from core.base.record_text import make_slug, one_line, strip_label
from core.config.settings import ExtractionSettings
from core.debug_memory.error_messages import location_hint
from core.extraction.approaches import explain_no_approach, find_approaches
from core.extraction.code import LANGUAGES, describe_placeholder, file_language, make_template
from core.extraction.errors import find_errors
from core.extraction.failures import find_anti_patterns
from core.extraction.fix_kinds import fix_category, fix_description, make_tags, mentioned_language
from core.extraction.fixes import Repair, describe_action, find_attempt_repairs, find_repairs, has_passed
from core.extraction.own_reflections import find_reflected_repairs
from core.extraction.record_parts import find_contributor, find_end, make_proposal, make_source
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
_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")  # wildcards and escapes in a signature


def extract(
    material: Material, known: KnownPatterns, settings: ExtractionSettings, types: Collection[PatternType] = ALL_TYPES
) -> Extraction:
    """Extract candidate patterns of some types; a pure function of its arguments."""
    logged = (repair for attempt in reversed(material.attempts) for repair in find_attempt_repairs(attempt))
    repairs = (*find_repairs(material), *islice(logged, MAX_PROPOSALS), *find_reflected_repairs(material))
    fixed = sorted(repairs, key=lambda repair: not repair.diff)[:MAX_PROPOSALS]  # those with code first
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
    return (
        bool(material.errors)
        or any(run.failures for session in material.sessions for run in session.executions)
        or any(action.has_failed for logged in material.attempts for action in logged.actions)
        or any(any(find_errors(iteration)) or iteration.failed for iteration in material.iterations)
    )


def find_error_patterns(material: Material, repairs: Iterable[Repair]) -> Iterator[tuple[Proposal, Repair]]:
    """Yield a pattern for each repair, with the repair."""
    for repair in repairs:
        error, at = repair.error, repair.at or find_end(material)
        category, description, language, tags = _describe(material, repair)
        fix = {"description": description, "fix_category": category}
        if (code := make_template(repair.diff, error.message)) is not None:
            fix["code_template"] = code.code
            if language:
                fix["code_template_language"] = language
        signature: dict[str, Any] = {"error_type": error.error_type, "error_pattern": error.signature}
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        proposal = make_proposal(
            PatternType.ERROR,
            _SLUGS.get(category) or make_slug(_VARIABLE.sub(" ", error.signature), "error"),
            {"error_signature": signature, "fix_approach": fix},
            sources=[make_source(material.loop_id, at, by=find_contributor(material, repair.agent))],
            at=at,
            tags=tags,
            trace=(repair.trace,),
        )
        yield proposal, repair


def find_code_templates(material: Material, repairs: Iterable[Repair]) -> Iterator[Proposal]:
    """Yield a template for each repair whose code has placeholders."""
    for repair in repairs:
        code = make_template(repair.diff, repair.error.message)
        if code is None or not code.placeholders:
            continue
        category, description, language, tags = _describe(material, repair)
        fields = {
            "language": language if language in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": description,
            "placeholders": {name: describe_placeholder(name) for name in code.placeholders},
            "use_case": one_line(f"{repair.error.error_type}: {repair.error.signature}"),
        }
        slug = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        at, sources = repair.at or find_end(material), [material.loop_id]
        yield make_proposal(
            PatternType.TEMPLATE, slug, fields, sources=sources, at=at, tags=tags, trace=(repair.trace,)
        )


def _describe(material: Material, repair: Repair) -> tuple[str, str, str, list[str]]:
    """Return category, description, language ("" if unknown) and tags of a repair."""
    error = repair.error
    category = fix_category(repair.description, repair.diff, repair.cause, error.message)
    language = file_language((error.file, *repair.files), repair.diff)
    language = language or mentioned_language(material.goal, error.message)
    places = (error.file, *repair.files[:3], repair.description, material.goal)
    tags = make_tags(language, category, error.error_type, places)
    return category, fix_description(repair.description, category, error.message), language, tags
