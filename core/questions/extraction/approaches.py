"""Success patterns and anti-patterns; docs/extraction.md#success-patterns."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.base.polarity import describe_avoided, parse_warning
from core.base.regexes import lazy_regex
from core.base.text import make_slug, one_line, plural, safe_matcher, strip_label
from core.questions.extraction.fixes import (
    MIN_DESCRIPTION,
    Repair,
    describe_action,
    describe_attempt,
    describe_reflection,
    detect_domain,
    fails_with,
    find_reason,
    find_reflected_steps,
    find_repeated_errors,
    find_warnings,
    has_passed,
    has_reason,
    list_files,
    list_tools,
    mentioned_language,
)
from core.questions.extraction.material import find_end, make_proposal, make_source
from core.questions.extraction.triggers import Sighting, count_failing, find_errors, parse_error
from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import PatternType
from core.retrieval.task import analyse_task, content_words

if TYPE_CHECKING:
    from core.base.settings import ExtractionSettings
    from core.records.extractions import Material, Proposal

_MAX_STEPS: Final = 20
_MAX_BENEFITS: Final = 3
_MIN_SEQUENCE: Final = 2  # steps that are worth a pattern beside that of a fix
_TASK_WORDS: Final = 3  # number of words (including the verb) that similar tasks contain in the same order
_MAX_FAILED: Final = 2  # steps that failed this often and never helped are left out
_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = lazy_regex(r"[^\W_][\w-]*")
_COMMAND: Final = re.compile(
    r"(?:npx|npm(?: run)?|pnpm|yarn|pytest|python|ruff|mypy|tsc|vitest|jest|eslint|cargo|go|mvn|gradle|make|bench)"
    r"(?: [\w:@./-]{1,40})?"
)
_ALONE: Final = frozenset({"pytest", "tsc", "vitest", "jest", "mypy", "eslint"})
_VERB: Final = re.compile(r"(?:passes|pass|succeeds|succeed|exits|reports|is)$")


def find_approaches(material: Material, fixes: Sequence[str] = ()) -> Iterator[Proposal]:
    """Yield the approach of a completed loop, or of the last successful attempt.

    `fixes` are the descriptions of fixes with patterns of their own. Beside one, only a sequence of other steps is
    worth a pattern.
    """
    approach = _find_in_loop(material) or _find_in_attempts(material)
    if approach is None or not material.goal.strip() or not _is_detailed(approach):
        return
    if adds_steps(approach.steps, fixes):
        yield _draft_approach(material, approach)


def adds_steps(steps: Iterable[str], fixes: Sequence[str]) -> bool:
    """Return whether the steps of an approach merit a pattern beside these fixes."""
    return not fixes or sum(not _repeats(step, fixes) for step in steps) >= _MIN_SEQUENCE


def _repeats(step: str, fixes: Iterable[str]) -> bool:
    """Return whether a step says the same as a fix, or one contains the other."""
    text = step.casefold().rstrip(".")
    others = (one_line(fix).casefold().rstrip(".") for fix in fixes)
    return any(other in text or text in other for other in others if other)


def explain_no_approach(material: Material) -> str:
    approach = _find_in_loop(material) or _find_in_attempts(material)
    if approach is None:
        loop = material.loop
        if loop is None:
            return "no attempt succeeded"
        if loop.success and loop.is_conversation:
            return "the messages of one session are not the steps of an approach"
        if loop.success:
            return "no iteration was recorded"
        is_claimed = loop.status is LoopStatus.COMPLETED
        return "its success is not proven" if is_claimed else f"the goal was not reached (the loop is {loop.status})"
    return "no task is known" if _is_detailed(approach) else "the recorded steps are too short"


def _is_detailed(approach: _Approach) -> bool:
    return sum(map(len, approach.steps)) >= MIN_DESCRIPTION


class _Approach(NamedTuple):
    """The steps that reached a goal; `where` names the records they are from."""

    description: str
    steps: list[str]
    tools: list[str]
    iterations: int
    benefits: list[str]
    files: tuple[str, ...]
    where: str


def _find_in_loop(material: Material) -> _Approach | None:
    loop = material.loop
    if loop is None or not loop.success or not material.iterations or loop.is_conversation:
        return None
    steps, where = _steps(material.iterations)
    if sum(map(len, steps)) < MIN_DESCRIPTION and (reflected := find_reflected_steps(material)[-_MAX_STEPS:]):
        steps, where = reflected, f"{plural(len(reflected), 'step')} of its reflections"
    count = max(len(material.iterations), loop.iteration or 0)
    return _Approach(
        description=one_line(material.task_text or "; ".join(steps)),
        steps=steps,
        tools=_list_tools(material.iterations, loop),
        iterations=count,
        benefits=_list_benefits(material),
        files=material.iterations[-1].files,
        where=where,
    )


def _find_in_attempts(material: Material) -> _Approach | None:
    """Return the planned steps of the last successful attempt."""
    succeeded = (one for one in reversed(material.attempts) if one.attempt.outcome is Outcome.SUCCESS)
    logged = next(succeeded, None)
    if logged is None:
        return None
    attempt = logged.attempt
    steps = list(dict.fromkeys(filter(None, map(strip_label, logged.steps))))[:_MAX_STEPS]
    count = attempt.iterations or max((action.iteration or 0 for action in logged.actions), default=0) or 1
    benefits = list(dict.fromkeys(filter(None, map(strip_label, attempt.worked))))[:_MAX_BENEFITS]
    return _Approach(
        description=strip_label(attempt.plan) or one_line(material.task_text or "; ".join(steps)),
        steps=steps or [strip_label(attempt.plan)],
        tools=list(list_tools(logged.actions))[:_MAX_STEPS],
        iterations=count,
        benefits=benefits or _list_benefits(material),
        files=list_files(logged.actions),
        where=f"{describe_attempt(attempt)}: {plural(len(steps), 'step')} of its plan",
    )


def _draft_approach(material: Material, tried: _Approach) -> Proposal:
    goal, at, count = material.goal, find_end(material), tried.iterations
    category = analyse_task(one_line(goal)).category or "implementation"
    approach = {
        "description": tried.description,
        "steps": tried.steps,
        **({"tools_used": tried.tools} if tried.tools else {}),
        "typical_iterations": {"average": float(count), "minimum": count, "maximum": count},
    }
    language = mentioned_language(goal, " ".join(material.criteria), " ".join(tried.files))
    return make_proposal(
        PatternType.SUCCESS,
        make_slug(goal, category),
        {"task_category": category, "task_description_pattern": task_pattern(goal) or None, "approach": approach},
        sources=[make_source(material.loop_id, at, outcome="success", iterations_required=count)],
        at=at,
        tags=(category, language, detect_domain((goal,))),
        trace=(tried.where,),
        average_iterations=float(count),
        benefits=tried.benefits or None,
    )


def task_pattern(task: str) -> str:
    """Return an RE2 pattern for similar tasks; "" if `task` has too few words."""
    words = [found[0] for found in _WORD.finditer(one_line(task))]
    content = [word for word in words[1:] if content_words(word)][: _TASK_WORDS - 1]
    if len(content) < _TASK_WORDS - 1:
        return ""
    words = [words[0], *content]  # RE2 supports word boundaries for ASCII words only
    bounded = (rf"\b{word}\b" if word.isascii() and word[-1] != "-" else re.escape(word) for word in words)
    pattern = f"(?i){'.*'.join(bounded)}"
    return pattern if safe_matcher(pattern).problem is None and safe_matcher(pattern).matches(task) else ""


def _steps(iterations: Sequence[Iteration]) -> tuple[list[str], str]:
    """Return the steps that helped, in order, and a text that names their iterations.

    External loops record no actions; the result or the learnings of an iteration are used instead.
    """
    steps: dict[str, str] = {}
    failed = _find_failed_steps(iterations)
    for place, iteration in enumerate(iterations):
        learned = "; ".join(iteration.learnings[:2])
        step = describe_action(iteration) or strip_label(iteration.result) or strip_label(learned)
        if step and _remove_numbers(step) not in failed and not (place and _is_worse(iterations[place - 1], iteration)):
            steps.setdefault(step, str(iteration.number if iteration.number is not None else "?"))
    last = dict(list(steps.items())[-_MAX_STEPS:])
    return list(last), f"{plural(len(last), 'step')} of iterations {', '.join(last.values())}"


def _find_failed_steps(iterations: Sequence[Iteration]) -> set[str]:
    """Return the steps, without numbers, that failed repeatedly and never helped."""
    missed: Counter[str] = Counter()
    helped: set[str] = set()
    before: int | None = None
    for iteration in iterations:
        step, fails = _remove_numbers(describe_action(iteration)), count_failing(iteration)
        if has_passed(iteration) or (before is not None and fails is not None and fails < before):
            helped.add(step)
        elif iteration.failed or fails or any(find_errors(iteration)):
            missed[step] += 1
        before = fails
    return {step for step, count in missed.items() if count >= _MAX_FAILED} - helped - {""}


def _remove_numbers(step: str) -> str:
    """Remove numbers: `Raise the timeout to 20 s` and `to 30 s` are the same step."""
    return _NUMBER.sub("#", step.casefold())


def _is_worse(before: Iteration, after: Iteration) -> bool:
    """Return whether more tests fail, or the quality is lower, than in `before`."""
    if has_passed(after):
        return False
    if before.quality is not None and after.quality is not None:
        return after.quality < before.quality
    failed, fails = count_failing(before), count_failing(after)
    return failed is not None and fails is not None and fails > failed


def _list_tools(iterations: Sequence[Iteration], loop: Loop) -> list[str]:
    tools = dict.fromkeys(one_line(tool, 80) for iteration in iterations for tool in iteration.tools[:_MAX_STEPS])
    for criterion in loop.criteria[:_MAX_STEPS]:
        for match in _COMMAND.finditer(one_line(criterion)):
            words = [word for word in match[0].split() if not _VERB.fullmatch(word) and word != "--"]
            if len(words) > 1 or words[0] in _ALONE:
                tools.setdefault(f"Bash ({' '.join(words)})")
    return list(tools)[:_MAX_STEPS]


def _list_benefits(material: Material) -> list[str]:
    """Return the learnings of successful iterations and reflections."""
    learned = [text for iteration in material.iterations if has_passed(iteration) for text in iteration.learnings]
    learned += [reflection.text for reflection in material.reflections if reflection.kind == "success_pattern"]
    return list(dict.fromkeys(filter(None, map(strip_label, learned))))[:_MAX_BENEFITS]


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
    mistakes = [
        *_repeated_errors(material, repairs, settings.repeated_error_count),
        *_refuted_fixes(material),
        *(() if is_conversation else _scope_creep(material, settings)),
        *(() if is_conversation else _falling_quality(material, settings)),
        *_warnings(material),
    ]
    yield from mistakes or (() if is_conversation else _whole_approach(material))


def detect_failure_mode(text: str) -> str:
    """Return the failure mode that a text describes; `incorrect_fix` by default."""
    text = text[:_MAX_TEXT]
    if _SCOPE.search(text):
        return "scope_creep"
    return "performance_regression" if _PERFORMANCE.search(text) else "incorrect_fix"


def has_steps(approach: str) -> bool:
    """Return whether a repeated approach names steps, not only changed files."""
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


def _draft_failure(
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
        yield _draft_failure(
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
                yield _draft_failure(
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
    yield _draft_failure(
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
            yield _draft_failure(
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
        reflection = warned.reflection
        yield _draft_failure(
            material,
            approach=warned.approach,
            mode=detect_failure_mode(" ".join((warned.approach, reflection.analysis, reflection.observation))),
            symptoms=[one_line(reflection.observation, 120)] if reflection.observation else [],
            why=warned.why,
            better=warned.better,
            iteration=reflection.iteration,
            at=reflection.at,
            trace=describe_reflection(reflection),
        )


def _whole_approach(material: Material) -> Iterator[Proposal]:
    """Yield the whole approach of a loop that failed or reached its iteration limit."""
    loop, iterations = material.loop, material.iterations
    steps = list(dict.fromkeys(filter(None, map(describe_action, iterations))))
    if loop is None or loop.status not in _FAILED or not steps:
        return
    yield _draft_failure(
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
