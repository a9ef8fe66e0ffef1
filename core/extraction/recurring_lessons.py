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
from core.extraction.failures import detect_failure_mode, make_anti_pattern
from core.extraction.fix_kinds import detect_domain, fix_category, fix_description, make_tags, mentioned_language
from core.extraction.own_reflections import describe_place, parse_warning
from core.extraction.record_parts import make_proposal, make_source, parse_pattern
from core.extraction.selection import KnownPatterns, mark_duplicate, narrow_trigger, refuse_ineffective
from core.records.debug_sessions import Failure
from core.records.extractions import Extraction, Proposal
from core.records.patterns import PatternType
from core.records.reflections import Reflection
from core.retrieval.task import analyse_task

KNOWN: Final = "already known from all of these loops as "
"""Start of the reason if the registry already has the pattern; its ID follows."""
_MAX_STEPS: Final = 20
_MAX_TRACE: Final = 10


def extract_recurring_lesson(
    cluster: Cluster, descriptions: Mapping[str, str], known: KnownPatterns, settings: ExtractionSettings
) -> Extraction:
    """Extract a candidate from a recurring learning, or explain why there is none.

    `descriptions` are those of loops and tasks by ID; `known` are the registry, and the errors and tasks of all loops.
    """
    tasks = [one_line(descriptions[source]) for source in cluster.sources if descriptions.get(source)]
    proposal = _compared(_propose(cluster, tasks, known, settings), cluster, known, settings)
    return Extraction(source_id=cluster.id, proposals=(proposal,))


def _propose(cluster: Cluster, tasks: list[str], known: KnownPatterns, settings: ExtractionSettings) -> Proposal:
    learning = strip_label(cluster.text)
    if extract_message(learning) or learning in known.messages:
        refused = "it is an error message: it describes the failure, not what to do"
        return replace(_success_pattern(learning, cluster, tasks), refused=refused)
    if error := _common_error(cluster):
        return narrow_trigger(_error_pattern(learning, error, cluster, tasks), error, known, settings)
    if approach := parse_warning(learning):
        return _anti_pattern(approach, cluster, tasks)
    return _success_pattern(learning, cluster, tasks)


def _success_pattern(learning: str, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = _category(learning, tasks)
    steps = _steps(cluster) or [learning]
    fields = {"task_category": category, "approach": {"description": learning, "steps": steps}}
    tags = (mentioned_language(learning, *tasks), category, detect_domain((learning, *tasks)))
    return make_proposal(PatternType.SUCCESS, make_slug(learning, category), fields, tags=tags, **_origin(cluster))


def _anti_pattern(approach: str, cluster: Cluster, tasks: list[str]) -> Proposal:
    mode = detect_failure_mode(" ".join((approach, cluster.central.analysis, cluster.central.observation)))
    symptoms = dict.fromkeys(one_line(one.observation, 120) for _, one in cluster.members if one.observation)
    return make_anti_pattern(
        approach,
        mode,
        symptoms=list(symptoms) or None,
        why=next((one.analysis for one in _central_first(cluster) if one.analysis), ""),
        better="; ".join(_steps(cluster)),
        tags=(mentioned_language(approach, *tasks), _category(approach, tasks), detect_domain((approach, *tasks))),
        **_origin(cluster),
    )


def _error_pattern(learning: str, error: Sighting, cluster: Cluster, tasks: list[str]) -> Proposal:
    category = fix_category(learning, "", "", error.message)
    fields = {
        "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
        "fix_approach": {"description": fix_description(learning, category, error.message), "fix_category": category},
    }
    language = mentioned_language(*tasks, error.message)
    tags = make_tags(language, category, error.error_type, (error.file, learning, *tasks))
    return make_proposal(PatternType.ERROR, make_slug(learning, "error"), fields, tags=tags, **_origin(cluster))


def _origin(cluster: Cluster) -> dict[str, Any]:
    """Return sources (each with its first reflection), time and trace of a proposal."""
    first = {member.source: member.reflection for member in reversed(cluster.members)}
    places = ((source, describe_place(first[source])) for source in cluster.sources[:_MAX_TRACE])
    trace = [f"{one_line(source, 80)} {place}".strip() for source, place in places]
    if len(cluster.sources) > _MAX_TRACE:
        trace.append(f"and {len(cluster.sources) - _MAX_TRACE} more")
    sources = [make_source(source, first[source].at) for source in cluster.sources]
    return {"sources": sources, "at": cluster.members[0].reflection.at, "trace": tuple(trace)}


def _common_error(cluster: Cluster) -> Sighting | None:
    """Return the error beside the learning that most sources, at least two, record."""
    found: dict[str, tuple[Sighting, set[str]]] = {}
    for source, one in cluster.members:
        for text in (one.observation, one.analysis):
            message = extract_message(text)
            if message and (error := parse_error(Failure(message=message), one.id, one.iteration, one.at)):
                found.setdefault(error.signature, (error, set()))[1].add(source)
    best = max(found.values(), key=lambda pair: len(pair[1]), default=None)
    return best[0] if best is not None and len(best[1]) >= MIN_LOOPS else None


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
