"""Extraction of patterns from finished work and from recurring learnings.

See docs/extraction.md and docs/extraction.md#recurring-learnings.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.base.polarity import Warned, parse_warning
from core.base.record_text import make_slug, one_line, strip_label
from core.base.text import visible_line
from core.questions.extraction.anchors import find_anchors
from core.questions.extraction.approaches import explain_no_approach, find_approaches
from core.questions.extraction.clustering import MIN_LOOPS, Cluster
from core.questions.extraction.code import (
    LANGUAGES,
    describe_placeholder,
    file_language,
    make_clean_template,
    make_template,
)
from core.questions.extraction.errors import Sighting, extract_message, find_errors, parse_error
from core.questions.extraction.failures import detect_failure_mode, find_anti_patterns, make_anti_pattern
from core.questions.extraction.fix_kinds import (
    detect_domain,
    fix_category,
    fix_description,
    make_tags,
    mentioned_language,
)
from core.questions.extraction.fixes import (
    Repair,
    describe_action,
    drop_same_fixes,
    find_logged_repairs,
    find_repairs,
    has_passed,
)
from core.questions.extraction.own_reflections import describe_place, find_reflected_repairs
from core.questions.extraction.record_parts import find_contributor, find_end, make_proposal, make_source, parse_pattern
from core.questions.extraction.selection import (
    KnownPatterns,
    add_alternatives,
    compare_with_registry,
    drop_broad_task,
    mark_duplicate,
    narrow_trigger,
    refuse_ineffective,
    remove_duplicates,
)
from core.questions.extraction.trigger_check import clean_message, make_trigger
from core.records.debug_sessions import Failure
from core.records.extractions import ALL_TYPES, Extraction, Material, Proposal
from core.records.patterns import PatternType
from core.retrieval.task import analyse_task
from core.tasks.error_messages import location_hint

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.records.reflections import Reflection

MAX_PROPOSALS: Final = 50  # maximum number of proposals of one type per loop; each is compared with all others
_SLUGS: Final = {"add_null_check": "null-check", "add_import": "missing-import"}
_VARIABLE: Final = re.compile(r"\\.\+?|\[[^]]*\]\+|\.\*")  # wildcards and escapes in a signature
KNOWN: Final = "already known from all of these loops as "
"""Start of the reason for a pattern that is already registered; its ID follows."""
_MAX_STEPS: Final = 20
_MAX_TRACE: Final = 10


def extract(
    material: Material, known: KnownPatterns, settings: ExtractionSettings, types: Collection[PatternType] = ALL_TYPES
) -> Extraction:
    """Extract candidate patterns of the given types from a loop, task or session."""
    logged = find_logged_repairs(material.attempts, material.root)
    repairs = (*find_repairs(material), *islice(logged, MAX_PROPOSALS), *find_reflected_repairs(material))
    ranked = sorted(repairs, key=lambda repair: not repair.diff)[:MAX_PROPOSALS]  # those with code first
    fixed = drop_same_fixes(ranked)
    proposals = remove_duplicates(_find_proposals(material, fixed, known, settings, types), settings)
    judged = (compare_with_registry(proposal, material.own_ids, known, settings) for proposal in proposals)
    return Extraction(
        source_id=material.source_id,
        proposals=add_alternatives(tuple(judged)),
        missing=tuple(_explain_missing(material, proposals, fixed, settings, types)),
    )


def _find_proposals(
    material: Material,
    fixed: list[Repair],
    known: KnownPatterns,
    settings: ExtractionSettings,
    types: Collection[PatternType],
) -> Iterator[Proposal]:
    without_record = fixed
    if PatternType.ERROR in types:
        without_record = []
        for proposal, repair in find_error_patterns(material, fixed, known, settings):
            if not repair.failures:
                counted = replace(proposal, failures=_failures(material, repair))
                proposal = narrow_trigger(counted, repair.error, known, settings)
            if proposal.refused:
                without_record.append(repair)
            yield proposal
    if PatternType.SUCCESS in types:
        fixes = [repair.description for repair in fixed] if PatternType.ERROR in types else []
        for proposal in find_approaches(material, fixes):
            yield drop_broad_task(proposal, known, settings)
    if PatternType.ANTI in types:
        yield from islice(find_anti_patterns(material, fixed, settings), MAX_PROPOSALS)
    if PatternType.TEMPLATE in types and settings.extract_code_templates:
        yield from find_code_templates(material, without_record, settings)


def _failures(material: Material, repair: Repair) -> int:
    """Count how often the same fix failed."""
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
        yield f"no error occurred {settings.repeated_error_count} times, and no approach was recorded as wrong"
    if PatternType.TEMPLATE in missing:
        if not settings.extract_code_templates:
            yield "code templates are disabled in the settings (extraction.extract_code_templates)"
        elif repairs and not any(repair.diff for repair in repairs):
            yield "no fix recorded its diff"
        elif repairs:
            yield "no fix adds code that could be generalised"


def _has_error(material: Material) -> bool:
    return (
        bool(material.errors)
        or any(run.failures for session in material.sessions for run in session.executions)
        or any(action.has_failed for logged in material.attempts for action in logged.actions)
        or any(any(find_errors(iteration)) or iteration.failed for iteration in material.iterations)
    )


def find_error_patterns(
    material: Material, repairs: Iterable[Repair], known: KnownPatterns, settings: ExtractionSettings
) -> Iterator[tuple[Proposal, Repair]]:
    """Yield an error pattern for each repair, with the repair."""
    for repair in repairs:
        error, at = repair.error, repair.at or find_end(material)
        category, description, language, tags = _describe(material, repair)
        if not description:
            continue
        fix = {"description": description, "fix_category": category}
        code = make_template(repair.diff, error.message)
        if repair.failures:
            code = make_clean_template(repair.diff, language)
            fix["diff_pattern"] = mask_secrets(repair.diff)
        if code is not None and settings.extract_code_templates:
            fix["code_template"] = code.code
            if language:
                fix["code_template_language"] = language
        signature: dict[str, Any] = {"error_type": error.error_type, "error_pattern": error.signature}
        if repair.failures:
            trigger = make_trigger(repair.failures, known.messages)
            signature["error_pattern"] = trigger.pattern
            signature["error_message"] = clean_message(repair.failures[0])
            signature["error_places"] = [visible_line(place) for place in trigger.places] or None
        if hint := location_hint(error.file, error.function):
            signature["error_location_hints"] = [hint]
        proposal = make_proposal(
            PatternType.ERROR,
            (not repair.failures and _SLUGS.get(category)) or make_slug(_VARIABLE.sub(" ", error.signature), "error"),
            {
                "error_signature": {key: value for key, value in signature.items() if value is not None},
                "fix_approach": {key: value for key, value in fix.items() if value},
            },
            sources=[make_source(material.loop_id, at, by=find_contributor(material, repair.agent))],
            at=at,
            tags=tags,
            trace=(repair.trace,),
            anchors=find_anchors(repair, material.root) if settings.extract_anchors else (),
        )
        yield proposal, repair


def find_code_templates(
    material: Material, repairs: Iterable[Repair], settings: ExtractionSettings
) -> Iterator[Proposal]:
    """Yield a code template for each repair whose code contains placeholders."""
    for repair in repairs:
        category, description, language, tags = _describe(material, repair)
        has_diff = bool(repair.failures)  # then only a clean template says more than the diff
        code = (
            make_clean_template(repair.diff, language) if has_diff else make_template(repair.diff, repair.error.message)
        )
        if code is None or not code.placeholders:
            continue
        fields = {
            "language": language if language in LANGUAGES.values() else "other",
            "template_code": code.code,
            "description": description,
            "placeholders": {name: describe_placeholder(name) for name in code.placeholders},
            "use_case": one_line(f"{repair.error.error_type}: {repair.error.signature}"),
        }
        slug = make_slug(category.removeprefix("add_").replace("_", " "), "code")
        at, sources, trace = repair.at or find_end(material), [material.loop_id], (repair.trace,)
        anchors = find_anchors(repair, material.root) if settings.extract_anchors else ()
        yield make_proposal(
            PatternType.TEMPLATE, slug, fields, sources=sources, at=at, tags=tags, trace=trace, anchors=anchors
        )


def _describe(material: Material, repair: Repair) -> tuple[str, str, str, list[str]]:
    """Return category, description, language ("" if unknown) and tags of a repair."""
    error = repair.error
    category = fix_category(repair.description, repair.diff, repair.cause, error.message)
    language = file_language((error.file, *repair.files), repair.diff)
    language = language or mentioned_language(material.goal, error.message)
    places = (error.file, *repair.files[:3], repair.description, material.goal)
    tags = make_tags(language, category, error.error_type, places)
    text = repair.description
    if not repair.failures:
        text = fix_description(text, category, error.message, repair.diff)
    return category, text, language, tags


def extract_recurring_lesson(
    cluster: Cluster, descriptions: Mapping[str, str], known: KnownPatterns, settings: ExtractionSettings
) -> Extraction:
    """Extract a candidate from a recurring learning, or explain why there is none.

    `descriptions` are those of loops and tasks, by ID. `known` has the errors and tasks of all loops.
    """
    tasks = [one_line(descriptions[source]) for source in cluster.sources if descriptions.get(source)]
    proposal = _compare(_propose(cluster, tasks, known, settings), cluster, known, settings)
    return Extraction(source_id=cluster.id, proposals=(proposal,))


def _propose(cluster: Cluster, tasks: list[str], known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    learning = strip_label(cluster.text)
    if extract_message(learning) or learning in known.messages:
        refused = "it is an error message: it describes the failure, not what to do"
        return replace(_propose_success_pattern(learning, cluster, tasks), refused=refused)
    if error := _find_common_error(cluster):
        return narrow_trigger(_propose_error_pattern(learning, error, cluster, tasks), error, known, settings)
    if warned := parse_warning(learning):
        return _propose_anti_pattern(warned, cluster, tasks)
    return _propose_success_pattern(learning, cluster, tasks)


def _propose_success_pattern(learning: str, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = _find_category(learning, tasks)
    steps = _list_steps(cluster) or [learning]
    fields = {"task_category": category, "approach": {"description": learning, "steps": steps}}
    tags = (mentioned_language(learning, *tasks), category, detect_domain((learning, *tasks)))
    return make_proposal(PatternType.SUCCESS, make_slug(learning, category), fields, tags=tags, **_origin(cluster))


def _propose_anti_pattern(warned: Warned, cluster: Cluster, tasks: list[str]) -> Proposal:
    approach = warned.text
    mode = detect_failure_mode(" ".join((approach, cluster.central.analysis, cluster.central.observation)))
    symptoms = dict.fromkeys(one_line(one.observation, 120) for _, one in cluster.members if one.observation)
    analysis = next((one.analysis for one in _central_first(cluster) if one.analysis), "")
    return make_anti_pattern(
        approach,
        mode,
        symptoms=list(symptoms) or None,
        why="; ".join(filter(None, (warned.why, analysis))),
        better=warned.better or "; ".join(_list_steps(cluster)),
        tags=(mentioned_language(approach, *tasks), _find_category(approach, tasks), detect_domain((approach, *tasks))),
        **_origin(cluster),
    )


def _propose_error_pattern(learning: str, error: Sighting, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = fix_category(learning, "", "", error.message)
    fields = {
        "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
        "fix_approach": {"description": fix_description(learning, category, error.message), "fix_category": category},
    }
    language = mentioned_language(*tasks, error.message)
    tags = make_tags(language, category, error.error_type, (error.file, learning, *tasks))
    return make_proposal(PatternType.ERROR, make_slug(learning, "error"), fields, tags=tags, **_origin(cluster))


def _origin(cluster: Cluster) -> dict[str, Any]:
    """Return sources, time and trace of a proposal."""
    first = {member.source: member.reflection for member in reversed(cluster.members)}
    places = ((source, describe_place(first[source])) for source in cluster.sources[:_MAX_TRACE])
    trace = [f"{one_line(source, 80)} {place}".strip() for source, place in places]
    if len(cluster.sources) > _MAX_TRACE:
        trace.append(f"and {len(cluster.sources) - _MAX_TRACE} more")
    sources = [make_source(source, first[source].at) for source in cluster.sources]
    return {"sources": sources, "at": cluster.members[0].reflection.at, "trace": tuple(trace)}


def _find_common_error(cluster: Cluster) -> Sighting | None:
    """Return the error that most sources, at least two, recorded with the learning."""
    found: dict[str, tuple[Sighting, set[str]]] = {}
    for source, one in cluster.members:
        for text in (one.observation, one.analysis):
            message = extract_message(text)
            if message and (error := parse_error(Failure(message=message), one.id, one.iteration, one.at)):
                found.setdefault(error.signature, (error, set()))[1].add(source)
    best = max(found.values(), key=lambda pair: len(pair[1]), default=None)
    return best[0] if best is not None and len(best[1]) >= MIN_LOOPS else None


def _list_steps(cluster: Cluster) -> list[str]:
    """Return the action items; those of the central reflection are first."""
    items = (one_line(item) for one in _central_first(cluster) for item in one.actions)
    return list(dict.fromkeys(filter(None, items)))[:_MAX_STEPS]


def _central_first(cluster: Cluster) -> tuple[Reflection, ...]:
    return cluster.central, *(member.reflection for member in cluster.members)


def _find_category(learning: str, tasks: list[str]) -> str:
    """Return the most frequent category of the tasks, or that of the learning."""
    found = Counter(filter(None, (analyse_task(task).category for task in tasks)))
    return found.most_common(1)[0][0] if found else analyse_task(learning).category or "implementation"


def _compare(proposal: Proposal, cluster: Cluster, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Compare with the registry; refuse a pattern that already has all these sources."""
    if proposal.refused:
        return proposal
    pattern = parse_pattern(proposal.type, proposal.slug, proposal.record)
    alike = known.similar.nearest(pattern, settings.similarity_threshold)
    for identifier, _ in alike:
        if set(cluster.sources) <= {source.loop_id for source in known.patterns[identifier].source_loops}:
            return replace(proposal, refused=f"{KNOWN}{identifier}")
    return refuse_ineffective(mark_duplicate(proposal, alike, settings), known, settings)
