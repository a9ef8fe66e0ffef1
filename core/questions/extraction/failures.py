"""Anti-patterns: approaches that failed; docs/extraction.md#anti-patterns."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from core.base.polarity import describe_avoided, parse_warning
from core.base.record_text import make_slug, one_line, strip_label
from core.base.text import plural
from core.questions.extraction.errors import Sighting, find_errors, parse_error
from core.questions.extraction.fix_kinds import detect_domain, has_reason, mentioned_language
from core.questions.extraction.fixes import Repair, describe_action, fails_with, find_repeated_errors
from core.questions.extraction.own_reflections import describe_reflection, find_reason, find_warnings
from core.questions.extraction.record_parts import find_end, make_proposal, make_source
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, LoopStatus
from core.records.patterns import PatternType
from core.retrieval.task import analyse_task

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.records.extractions import Material, Proposal

_MAX_TEXT: Final = 2000
_MAX_SYMPTOMS: Final = 5
_MAX_TRIED: Final = 3
_SCOPE: Final = re.compile(
    r"\bscope creep\b|\b(?:out of|beyond (?:the|its)|outside (?:the|its)) scope\b"
    r"|\bunrelated (?:changes?|files?|refactor\w*|edits?)\b"
    r"|\bnot part of the task\b|\bwhile (?:I was |we were )?at it\b|\bfiles? (?:that were )?not touched\b",
    re.IGNORECASE,
)
_PERFORMANCE: Final = re.compile(r"\bp9\d\b|\blatency\b|\bms\b|\bslower\b|\bbench\b", re.IGNORECASE)
_AGAIN: Final = ", again and again, though the error stays the same"
_FAILED: Final = frozenset({LoopStatus.FAILED, LoopStatus.LIMIT})
"""Statuses of loops whose approach failed; an aborted or crashed loop shows nothing about its approach."""


def find_anti_patterns(
    material: Material, repairs: Sequence[Repair], settings: ExtractionSettings
) -> Iterator[Proposal]:
    """Yield the mistakes of a loop; if none are found, the approach that failed.

    The messages of a conversation say what was reached, not what was tried, so they do not describe an approach.
    """
    is_conversation = material.loop is not None and material.loop.is_conversation
    found = [
        *_repeated_errors(material, repairs, settings.repeated_error_count),
        *_refuted_fixes(material),
        *(() if is_conversation else _scope_creep(material, settings)),
        *(() if is_conversation else _falling_quality(material, settings)),
        *_warnings(material),
    ]
    yield from found or (() if is_conversation else _whole_approach(material))


def detect_failure_mode(text: str) -> str:
    """Return the failure mode that a text describes; `incorrect_fix` by default."""
    text = text[:_MAX_TEXT]
    if _SCOPE.search(text):
        return "scope_creep"
    return "performance_regression" if _PERFORMANCE.search(text) else "incorrect_fix"


def has_steps(approach: str) -> bool:
    """Return whether a repeated approach names what was done, not only which files were changed."""
    steps, again, _ = approach.removeprefix("Avoid: ").partition(_AGAIN)
    return not again or has_reason(steps)


def make_anti_pattern(
    approach: str,
    mode: str,
    *,
    symptoms: Sequence[str] | None,
    why: str,
    better: str,
    tags: tuple[str, str, str],
    **origin: Any,
) -> Proposal:
    """Propose an anti-pattern; `tags` are language, category and domain."""
    avoided = describe_avoided(one_line(approach))
    warned = parse_warning(avoided)
    fields = {
        "approach_description": avoided,
        "failure_mode": mode,
        "failure_symptoms": None if symptoms is None else [*symptoms[:_MAX_SYMPTOMS]],
        "why_it_fails": one_line(why) or None,
        "better_alternative": {"description": one_line(better)} if better else None,
    }
    kind = mode.replace("_", "-")
    slug = make_slug(warned.approach if warned else avoided, kind)
    all_tags = (tags[0], kind, *tags[1:])
    return make_proposal(PatternType.ANTI, slug, fields, tags=all_tags, **origin)


def _make_proposal(
    material: Material,
    *,
    approach: str,
    mode: str,
    symptoms: Sequence[str],
    why: str,
    better: str = "",
    iteration: int | None,
    at: datetime | None,
    trace: str,
) -> Proposal:
    task, at = material.goal, at or find_end(material)
    return make_anti_pattern(
        approach,
        mode,
        symptoms=symptoms,
        why=why or find_reason(material, iteration),
        better=better,
        tags=(mentioned_language(task), analyse_task(one_line(task)).category, detect_domain((task,))),
        sources=[make_source(material.loop_id, at, failure_iteration=iteration)],
        at=at,
        trace=(one_line(trace),),
    )


def _repeated_errors(material: Material, repairs: Sequence[Repair], least: int) -> Iterator[Proposal]:
    fixed = {repair.error.signature: repair for repair in repairs}
    runs = [run for session in material.sessions for run in session.executions]
    for times, steps in _find_series(material, least):
        last = times[-1]
        doing = "; ".join(list(steps)[:_MAX_TRIED]) or "The same approach"
        repair = fixed.get(last.signature)
        analyses = (run.analysis for run in runs if run.analysis and fails_with(run, last.signature))
        analysis = next(analyses, None)
        yield _make_proposal(
            material,
            approach=f"{doing}{_AGAIN}",
            mode="repeated_same_error",
            symptoms=[f"{error.where}: {one_line(error.message, 120)}" for error in times],
            why=(one_line(analysis.root_cause) if analysis else "")
            or find_reason(material, last.iteration)
            or f"The error occurred {len(times)} times: the changes did not fix its cause",
            better=repair.description if repair else "",
            iteration=last.iteration,
            at=last.at,
            trace=f"the same error in {', '.join(error.where for error in times)}",
        )


def _find_series(material: Material, least: int) -> Iterator[tuple[Sequence[Sighting], Iterable[str]]]:
    """Yield the occurrences of each repeated error, and the attempts to fix it."""
    met: dict[str, dict[str, Sighting]] = defaultdict(dict)
    is_conversation = material.loop is not None and material.loop.is_conversation
    for error in () if is_conversation else _find_sightings(material):
        met[error.signature].setdefault(error.where, error)
    tried = {iteration.number: describe_action(iteration) for iteration in material.iterations}
    reported: set[str] = set()
    for signature, times in met.items():
        if len(times) >= least:
            reported.add(signature)
            steps = (tried.get(error.iteration) for error in times.values())
            yield tuple(times.values()), dict.fromkeys(filter(None, steps))
    for errors, changes in chain.from_iterable(find_repeated_errors(one, least) for one in reversed(material.attempts)):
        if errors[0].signature not in reported:
            reported.add(errors[0].signature)
            yield errors, changes


def _refuted_fixes(material: Material) -> Iterator[Proposal]:
    for session in material.sessions:
        worked = [run.fix.description for run in session.executions if run.fix and run.fix.verified and run.failures]
        for run in session.executions:
            if run.fix is not None and run.fix.verified is False and run.fix.description.strip():
                yield _make_proposal(
                    material,
                    approach=strip_label(run.fix.description),
                    mode="incorrect_fix",
                    symptoms=[one_line(failure.message, 120) for failure in run.failures if failure.message],
                    why=one_line(run.analysis.root_cause) if run.analysis else "",
                    better=strip_label(worked[-1]) if worked else one_line("; ".join(session.recommendations[:1])),
                    iteration=session.iteration,
                    at=run.at,
                    trace=f"debug session {session.id}, attempt {run.attempt}: verification failed",
                )


def _scope_creep(material: Material, settings: ExtractionSettings) -> Iterator[Proposal]:
    """Yield scope creep: more and more changed files, or a text that reports it."""
    mentioned = [
        (iteration, text)
        for iteration in material.iterations
        for text in (iteration.result, *iteration.learnings)
        if _SCOPE.search(text[:_MAX_TEXT])
    ]
    counts = [(iteration, len(set(iteration.files))) for iteration in material.iterations if iteration.files]
    first, most = (counts[0][1], max(counts, key=lambda pair: pair[1])) if counts else (0, None)
    if most is not None and most[1] >= settings.scope_growth * first and most[1] - first >= settings.scope_files:
        iteration, symptom = most[0], f"{first} files at first, {most[1]} in iteration {most[0].number}"
    elif mentioned:
        iteration, symptom = mentioned[0][0], one_line(mentioned[0][1])
    else:
        return
    yield _make_proposal(
        material,
        approach=describe_action(iteration) or one_line(material.task_text),
        mode="scope_creep",
        symptoms=[symptom],
        why="The change reached further than the task asked for",
        better=_last_learning(iteration),
        iteration=iteration.number,
        at=iteration.at,
        trace=f"iteration {iteration.number}",
    )


def _falling_quality(material: Material, settings: ExtractionSettings) -> Iterator[Proposal]:
    measured = [(iteration, iteration.quality) for iteration in material.iterations if iteration.quality is not None]
    run: list[tuple[Iteration, float]] = []
    for place, (iteration, quality) in enumerate(measured):
        run.append((iteration, quality))
        recovery = measured[place + 1] if place + 1 < len(measured) else None
        if recovery is not None and recovery[1] < quality:
            continue
        if len(run) > settings.falling_iterations:
            steps = dict.fromkeys(filter(None, (describe_action(one) for one, _ in run[1:])))
            yield _make_proposal(
                material,
                approach="; ".join(list(steps)[:_MAX_TRIED]) or one_line(material.task_text),
                mode="quality_degradation",
                symptoms=[f"Quality fell: {' → '.join(f'{value:.0%}' for _, value in run)}"],
                why=_last_learning(iteration),
                better=describe_action(recovery[0]) if recovery is not None else "",
                iteration=iteration.number,
                at=iteration.at,
                trace=f"iterations {', '.join(str(one.number) for one, _ in run)}",
            )
        run = []


def _warnings(material: Material) -> Iterator[Proposal]:
    for warned in find_warnings(material):
        one = warned.reflection
        yield _make_proposal(
            material,
            approach=warned.approach,
            mode=detect_failure_mode(" ".join((warned.approach, one.analysis, one.observation))),
            symptoms=[one_line(one.observation, 120)] if one.observation else [],
            why=warned.why,
            better=warned.better,
            iteration=one.iteration,
            at=one.at,
            trace=describe_reflection(one),
        )


def _whole_approach(material: Material) -> Iterator[Proposal]:
    """Yield the whole approach of a loop that failed or reached its iteration limit."""
    loop, iterations = material.loop, material.iterations
    steps = list(dict.fromkeys(filter(None, map(describe_action, iterations))))
    if loop is None or loop.status not in _FAILED or not steps:
        return
    yield _make_proposal(
        material,
        approach=one_line(": ".join(filter(None, (one_line(material.task_text, 120), "; ".join(steps[-_MAX_TRIED:]))))),
        mode="performance_regression" if _PERFORMANCE.search(" ".join(loop.criteria)[:_MAX_TEXT]) else "incorrect_fix",
        symptoms=[one_line(iteration.result, 160) for iteration in iterations if iteration.result][-_MAX_SYMPTOMS:],
        why=next((_last_learning(one) for one in reversed(iterations) if one.learnings), ""),
        iteration=iterations[-1].number,
        at=iterations[-1].at,
        trace=f"the loop ended as {loop.status} after {plural(len(iterations), 'iteration')}",
    )


def _find_sightings(material: Material) -> Iterable[Sighting]:
    """Return the errors of the iterations, or of debug sessions, or of the error log.

    The sources contain the same errors, so only the first one with errors is used.
    """
    if of_iterations := [error for iteration in material.iterations for error in find_errors(iteration)]:
        return of_iterations
    of_sessions = (
        parse_error(failure, f"attempt {run.attempt} of {session.id}", session.iteration, run.at)
        for session in material.sessions
        for run in session.executions
        for failure in run.failures
    )
    of_log = (
        parse_error(Failure(message=event.error.message), event.id, None, event.at)
        for event in material.errors
        if event.error
    )
    return list(filter(None, of_sessions)) or list(filter(None, of_log))


def _last_learning(iteration: Iteration) -> str:
    return strip_label(iteration.learnings[-1]) if iteration.learnings else ""
