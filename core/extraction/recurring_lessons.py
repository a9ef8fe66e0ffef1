"""The candidate pattern that a recurring learning gives, with lineage to every loop that told it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from core.base.record_text import make_slug, one_line, strip_label
from core.config.settings import ExtractionSettings
from core.extraction.clustering import MIN_LOOPS, Cluster
from core.extraction.errors import Sighting, message_in, sighting
from core.extraction.failures import failure_mode
from core.extraction.fix_kinds import domain, fix_category, fix_description, languages_of, tags
from core.extraction.known_patterns import Known
from core.extraction.own_reflections import warned_of
from core.extraction.record_parts import first_use, pattern_of, stamp
from core.extraction.selection import narrowed, rated, standing
from core.records.debug_sessions import Failure
from core.records.extractions import Extraction, Proposal
from core.records.patterns import PatternType
from core.records.reflections import Reflection
from core.retrieval.task import analyse_task

KNOWN: Final = "already known from all of these loops as "
"""What the reason begins with where the registry has the pattern already; its id follows."""
_MAX_STEPS: Final = 20
_MAX_SYMPTOMS: Final = 5
_MAX_TRACE: Final = 10


def draft(
    cluster: Cluster,
    asked: Mapping[str, str],
    known: Known,
    settings: ExtractionSettings,
) -> Extraction:
    """What a recurring learning offers: one candidate, or why there is none. Nothing is read or written.

    A learning that opens with a warning gives an anti-pattern of what it warns of; one that comes with the same error
    from at least two loops an error pattern with the learning as its fix; any other a success pattern. By (0) it
    counts one use, the discovery by the loop that told it first: who tells it again has not used the pattern.

    Args:
        cluster: The learning.
        asked: What the loops and tasks were to do, by id.
        known: What the project knows already.
        settings: Thresholds, and whether duplicates are merged.
    """
    proposal = _proposal(cluster, asked, known, settings)
    return Extraction(source_id=cluster.id, proposals=(_compared(proposal, cluster, known, settings),))


def _proposal(
    cluster: Cluster,
    asked: Mapping[str, str],
    known: Known,
    settings: ExtractionSettings,
) -> Proposal:
    learning = strip_label(cluster.text)
    tasks = [one_line(asked[source]) for source in cluster.sources if asked.get(source)]
    first = {member.source: member.reflection for member in reversed(cluster.members)}
    lineage = {"source_loops": [_source(source, first[source]) for source in cluster.sources]}
    seen = {**lineage, **first_use(cluster.members[0].reflection.at)}
    trace = tuple(_told_where(source, first[source]) for source in cluster.sources[:_MAX_TRACE])
    if len(cluster.sources) > _MAX_TRACE:
        trace = (*trace, f"and {len(cluster.sources) - _MAX_TRACE} more")
    if message_in(learning) or learning in known.messages:
        proposal = _success_pattern(learning, cluster, tasks, seen, trace)
        return replace(proposal, refused="it is an error message: it says what went wrong, not what to do")
    if error := _common_error(cluster):
        return narrowed(_error_pattern(learning, error, tasks, seen, trace), error, known, settings)
    if warned := warned_of(learning):
        return _anti_pattern(warned, cluster, tasks, seen, trace)
    return _success_pattern(learning, cluster, tasks, seen, trace)


def _success_pattern(
    learning: str, cluster: Cluster, tasks: list[str], seen: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    category = _category(learning, tasks)
    record = {
        "type": "success_pattern",
        "task_category": category,
        "approach": {"description": learning, "steps": _steps(cluster) or [learning]},
        **seen,
        "success_rate": 1.0,
        "usage_count": 1,
        "tags": _tags(languages_of(learning, *tasks), category, domain((learning, *tasks))),
    }
    return Proposal(type=PatternType.SUCCESS, slug=make_slug(learning, category), record=record, trace=trace)


def _anti_pattern(
    warned: str, cluster: Cluster, tasks: list[str], seen: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    mode = failure_mode(" ".join((warned, cluster.central.analysis, cluster.central.observation)))
    record: dict[str, Any] = {"type": "anti_pattern", "approach_description": warned, "failure_mode": mode}
    if symptoms := dict.fromkeys(one_line(one.observation, 120) for _, one in cluster.members if one.observation):
        record["failure_symptoms"] = list(symptoms)[:_MAX_SYMPTOMS]
    if why := next((one.analysis for one in _central_first(cluster) if one.analysis), ""):
        record["why_it_fails"] = one_line(why)
    if steps := _steps(cluster):
        record["better_alternative"] = {"description": one_line("; ".join(steps))}
    language, category = languages_of(warned, *tasks), _category(warned, tasks)
    record |= {
        **seen,
        "failure_rate": 1.0,
        "occurrence_count": 1,
        "tags": _tags(language, mode.replace("_", "-"), category, domain((warned, *tasks))),
    }
    return Proposal(type=PatternType.ANTI, slug=make_slug(warned, mode.replace("_", "-")), record=record, trace=trace)


def _error_pattern(
    learning: str, error: Sighting, tasks: list[str], seen: dict[str, Any], trace: tuple[str, ...]
) -> Proposal:
    category = fix_category(learning, "", "", error.message)
    record = {
        "type": "error_pattern",
        "error_signature": {"error_type": error.error_type, "error_pattern": error.signature},
        "fix_approach": {
            "description": fix_description(learning, category, error.message),
            "fix_category": category,
        },
        **seen,
        "success_rate": 1.0,
        "usage_count": 1,
        "tags": tags(languages_of(*tasks, error.message), category, error.error_type, (error.file, learning, *tasks)),
    }
    return Proposal(type=PatternType.ERROR, slug=make_slug(learning, "error"), record=record, trace=trace)


def _common_error(cluster: Cluster) -> Sighting | None:
    """The error that most sources tell beside the learning, if at least two do."""
    met: dict[str, tuple[Sighting, set[str]]] = {}
    for source, one in cluster.members:
        for text in (one.observation, one.analysis):
            message = message_in(text)
            if message and (error := sighting(Failure(message=message), one.id, one.iteration, one.at)):
                met.setdefault(error.signature, (error, set()))[1].add(source)
    counts = Counter({signature: len(sources) for signature, (_, sources) in met.items()})
    for signature, count in counts.most_common(1):
        if count >= MIN_LOOPS:
            return met[signature][0]
    return None


def _steps(cluster: Cluster) -> list[str]:
    """What was to be done about it, the central one's items first."""
    items = (one_line(item) for one in _central_first(cluster) for item in one.actions)
    return list(dict.fromkeys(filter(None, items)))[:_MAX_STEPS]


def _central_first(cluster: Cluster) -> tuple[Reflection, ...]:
    return cluster.central, *(member.reflection for member in cluster.members)


def _category(learning: str, tasks: list[str]) -> str:
    """(3) `task_category`: that of most of the tasks, else what the learning speaks of."""
    found = Counter(filter(None, (analyse_task(task).category for task in tasks)))
    return found.most_common(1)[0][0] if found else analyse_task(learning).category or "implementation"


def _tags(*found: str) -> list[str]:
    return list(dict.fromkeys(filter(None, found)))


def _source(source: str, one: Reflection) -> dict[str, Any]:
    return {"loop_id": source} if one.at is None else {"loop_id": source, "timestamp": stamp(one.at)}


def _told_where(source: str, one: Reflection) -> str:
    for label, number in (("attempt", one.attempt), ("iteration", one.iteration)):
        if number is not None:
            return f"{one_line(source, 80)} {label} {number}"
    return one_line(source, 80)


def _compared(proposal: Proposal, cluster: Cluster, known: Known, settings: ExtractionSettings) -> Proposal:
    """A proposal with what the registry knows of it; nothing new where a pattern names all of the loops already."""
    if proposal.refused:
        return proposal
    alike = known.similar.nearest(
        pattern_of(proposal.type, proposal.slug, proposal.record), settings.similarity_threshold
    )
    for identifier, _ in alike:
        if set(cluster.sources) <= {source.loop_id for source in known.patterns[identifier].source_loops}:
            return replace(proposal, refused=f"{KNOWN}{identifier}")
    return rated(standing(proposal, alike, settings), known, settings)
