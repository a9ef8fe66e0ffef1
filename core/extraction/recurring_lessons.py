"""Candidates from recurring learnings; docs/extraction.md#recurring-learnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from core.base.record_text import make_slug, one_line, strip_label
from core.config.settings import ExtractionSettings
from core.extraction.clustering import MIN_LOOPS, Cluster
from core.extraction.errors import Sighting, extract_message, parse_error
from core.extraction.failures import detect_failure_mode
from core.extraction.fix_kinds import detect_domain, fix_category, fix_description, make_tags, mentioned_language
from core.extraction.own_reflections import describe_place, parse_warning
from core.extraction.record_parts import format_timestamp, make_use_dates, parse_pattern
from core.extraction.selection import KnownPatterns, mark_duplicate, narrow_trigger, refuse_ineffective
from core.records.debug_sessions import Failure
from core.records.extractions import Extraction, Proposal
from core.records.patterns import PatternType
from core.records.reflections import Reflection
from core.retrieval.task import analyse_task

KNOWN: Final = "already known from all of these loops as "
"""Start of the reason if the registry already has the pattern; its ID follows."""
_MAX_STEPS: Final = 20
_MAX_SYMPTOMS: Final = 5
_MAX_TRACE: Final = 10


def extract_recurring_lesson(
    cluster: Cluster, descriptions: Mapping[str, str], known: KnownPatterns, settings: ExtractionSettings
) -> Extraction:
    """Extract a candidate from a recurring learning, or explain why there is none.

    Args:
        descriptions: Descriptions of loops and tasks by ID.
        known: The registry, and the errors and tasks of all loops.
    """
    proposal = _proposal(cluster, descriptions, known, settings)
    return Extraction(source_id=cluster.id, proposals=(_compared(proposal, cluster, known, settings),))


def _proposal(
    cluster: Cluster, descriptions: Mapping[str, str], known: KnownPatterns, settings: ExtractionSettings
) -> Proposal:
    learning = strip_label(cluster.text)
    tasks = [one_line(descriptions[source]) for source in cluster.sources if descriptions.get(source)]
    first = {member.source: member.reflection for member in reversed(cluster.members)}
    lineage = {"source_loops": [_source(source, first[source]) for source in cluster.sources]}
    common = {**lineage, **make_use_dates(cluster.members[0].reflection.at)}
    trace = tuple(
        f"{one_line(source, 80)} {describe_place(first[source])}".strip() for source in cluster.sources[:_MAX_TRACE]
    )
    if len(cluster.sources) > _MAX_TRACE:
        trace = (*trace, f"and {len(cluster.sources) - _MAX_TRACE} more")
    if extract_message(learning) or learning in known.messages:
        proposal = _success_pattern(learning, cluster, tasks, common, trace)
        return replace(proposal, refused="it is an error message: it describes the failure, not what to do")
    if error := _common_error(cluster):
        return narrow_trigger(_error_pattern(learning, error, tasks, common, trace), error, known, settings)
    if approach := parse_warning(learning):
        return _anti_pattern(approach, cluster, tasks, common, trace)
    return _success_pattern(learning, cluster, tasks, common, trace)


def _success_pattern(
    learning: str, cluster: Cluster, tasks: list[str], common: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    category = _category(learning, tasks)
    record = {
        "type": "success_pattern",
        "task_category": category,
        "approach": {"description": learning, "steps": _steps(cluster) or [learning]},
        **common,
        "success_rate": 1.0,
        "usage_count": 1,
        "tags": _tags(mentioned_language(learning, *tasks), category, detect_domain((learning, *tasks))),
    }
    return Proposal(type=PatternType.SUCCESS, slug=make_slug(learning, category), record=record, trace=trace)


def _anti_pattern(
    approach: str, cluster: Cluster, tasks: list[str], common: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    mode = detect_failure_mode(" ".join((approach, cluster.central.analysis, cluster.central.observation)))
    record: dict[str, Any] = {"type": "anti_pattern", "approach_description": approach, "failure_mode": mode}
    if symptoms := dict.fromkeys(one_line(one.observation, 120) for _, one in cluster.members if one.observation):
        record["failure_symptoms"] = list(symptoms)[:_MAX_SYMPTOMS]
    if why := next((one.analysis for one in _central_first(cluster) if one.analysis), ""):
        record["why_it_fails"] = one_line(why)
    if steps := _steps(cluster):
        record["better_alternative"] = {"description": one_line("; ".join(steps))}
    language, category = mentioned_language(approach, *tasks), _category(approach, tasks)
    record |= {
        **common,
        "failure_rate": 1.0,
        "occurrence_count": 1,
        "tags": _tags(language, mode.replace("_", "-"), category, detect_domain((approach, *tasks))),
    }
    return Proposal(type=PatternType.ANTI, slug=make_slug(approach, mode.replace("_", "-")), record=record, trace=trace)


def _error_pattern(
    learning: str, error: Sighting, tasks: list[str], common: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    category = fix_category(learning, "", "", error.message)
    record = {
        "type": "error_pattern",
        "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
        "fix_approach": {"description": fix_description(learning, category, error.message), "fix_category": category},
        **common,
        "success_rate": 1.0,
        "usage_count": 1,
        "tags": make_tags(
            mentioned_language(*tasks, error.message), category, error.error_type, (error.file, learning, *tasks)
        ),
    }
    return Proposal(type=PatternType.ERROR, slug=make_slug(learning, "error"), record=record, trace=trace)


def _common_error(cluster: Cluster) -> Sighting | None:
    """Return the error beside the learning that most sources, at least two, record."""
    found: dict[str, tuple[Sighting, set[str]]] = {}
    for source, one in cluster.members:
        for text in (one.observation, one.analysis):
            message = extract_message(text)
            if message and (error := parse_error(Failure(message=message), one.id, one.iteration, one.at)):
                found.setdefault(error.signature, (error, set()))[1].add(source)
    counts = Counter({signature: len(sources) for signature, (_, sources) in found.items()})
    for signature, count in counts.most_common(1):
        if count >= MIN_LOOPS:
            return found[signature][0]
    return None


def _steps(cluster: Cluster) -> list[str]:
    """Return the action items, those of the central reflection first."""
    items = (one_line(item) for one in _central_first(cluster) for item in one.actions)
    return list(dict.fromkeys(filter(None, items)))[:_MAX_STEPS]


def _central_first(cluster: Cluster) -> tuple[Reflection, ...]:
    return cluster.central, *(member.reflection for member in cluster.members)


def _category(learning: str, tasks: list[str]) -> str:
    """Return the category of most tasks, else that of the learning."""
    found = Counter(filter(None, (analyse_task(task).category for task in tasks)))
    return found.most_common(1)[0][0] if found else analyse_task(learning).category or "implementation"


def _tags(*found: str) -> list[str]:
    return list(dict.fromkeys(filter(None, found)))


def _source(source: str, one: Reflection) -> dict[str, Any]:
    return {"loop_id": source} if one.at is None else {"loop_id": source, "timestamp": format_timestamp(one.at)}


def _compared(proposal: Proposal, cluster: Cluster, known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    """Compare with the registry; refuse a pattern that already has all these loops."""
    if proposal.refused:
        return proposal
    alike = known.similar.nearest(
        parse_pattern(proposal.type, proposal.slug, proposal.record), settings.similarity_threshold
    )
    for identifier, _ in alike:
        if set(cluster.sources) <= {source.loop_id for source in known.patterns[identifier].source_loops}:
            return replace(proposal, refused=f"{KNOWN}{identifier}")
    return refuse_ineffective(mark_duplicate(proposal, alike, settings), known, settings)
