"""Success patterns: how a loop that reached its goal went about it (0) 3_identify_successful_approaches."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from core.base.record_text import make_slug, one_line, strip_label
from core.base.text import plural, safe_matcher
from core.extraction.attempts import files_of, place_of, tools_of
from core.extraction.errors import failing, in_iteration
from core.extraction.fix_kinds import MIN_DESCRIPTION, domain, languages_of
from core.extraction.fixes import action, passes
from core.extraction.own_reflections import reflected_steps
from core.extraction.record_parts import ended, first_use, source
from core.records.extractions import Proposal
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.material import Material
from core.records.patterns import PatternType
from core.retrieval.task import analyse_task
from core.retrieval.words import content_words

_MAX_STEPS: Final = 20
_MAX_BENEFITS: Final = 3
_TASK_WORDS: Final = 3
"""Words of a task, its verb included, that a task which benefits must have in the same order."""
_REPEATEDLY: Final = 2
"""A step that failed so often, and never helped, is not one of the approach."""
_NUMBER: Final = re.compile(r"\d+")
_WORD: Final = re.compile(r"[^\W_][\w-]*")
_COMMAND: Final = re.compile(
    r"(?:npx|npm(?: run)?|pnpm|yarn|pytest|python|ruff|mypy|tsc|vitest|jest|eslint|cargo|go|mvn|gradle|make|bench)"
    r"(?: [\w:@./-]{1,40})?",
)
_ALONE: Final = frozenset({"pytest", "tsc", "vitest", "jest", "mypy", "eslint"})
_VERB: Final = re.compile(r"(?:passes|pass|succeeds|succeed|exits|reports|is)$")


def approaches(material: Material) -> Iterator[Proposal]:
    """The approach of a loop that completed, else that of the last attempt at its task that succeeded; else none."""
    found = _found(material)
    if found is not None and material.goal.strip() and _is_telling(found):
        yield _proposal(material, found)


def why_no_approach(material: Material) -> str:
    """Why `approaches` gives none."""
    found = _found(material)
    if found is None:
        status = material.loop.status if material.loop is not None else None
        if status is LoopStatus.COMPLETED:
            return "no iteration was recorded"
        return f"the goal was not reached (the loop is {status})" if status is not None else "no attempt succeeded"
    return "no task is known" if _is_telling(found) else "no step was recorded that says enough"


def _found(material: Material) -> _Approach | None:
    return _of_loop(material) or _of_attempt(material)


def _is_telling(found: _Approach) -> bool:
    return sum(map(len, found.steps)) >= MIN_DESCRIPTION


class _Approach(NamedTuple):
    """How something was reached, and where that is told."""

    description: str
    steps: list[str]
    tools: list[str]
    iterations: int
    benefits: list[str]
    files: tuple[str, ...]
    where: str


def _of_loop(material: Material) -> _Approach | None:
    loop = material.loop
    if loop is None or loop.status is not LoopStatus.COMPLETED or not material.iterations:
        return None
    steps, where = _steps(material.iterations)
    if sum(map(len, steps)) < MIN_DESCRIPTION and (reflected := reflected_steps(material)[-_MAX_STEPS:]):
        steps, where = reflected, f"{plural(len(reflected), 'step')} of its reflections"
    count = max(len(material.iterations), loop.iteration or 0)
    return _Approach(
        description=one_line(loop.task),
        steps=steps,
        tools=_tools(material.iterations, loop),
        iterations=count,
        benefits=_benefits(material, count),
        files=material.iterations[-1].files,
        where=where,
    )


def _of_attempt(material: Material) -> _Approach | None:
    """The steps that the attempt had planned; (1) has no other account of them than its actions."""
    succeeded = (one for one in reversed(material.attempts) if one.attempt.outcome is Outcome.SUCCESS)
    logged = next(succeeded, None)
    if logged is None:
        return None
    attempt = logged.attempt
    steps = list(dict.fromkeys(filter(None, map(strip_label, logged.steps))))[:_MAX_STEPS]
    count = attempt.iterations or max((action.iteration or 0 for action in logged.actions), default=0) or 1
    benefits = list(dict.fromkeys(filter(None, map(strip_label, attempt.worked))))[:_MAX_BENEFITS]
    return _Approach(
        description=strip_label(attempt.plan) or one_line(material.goal),
        steps=steps or [strip_label(attempt.plan)],
        tools=list(tools_of(logged.actions))[:_MAX_STEPS],
        iterations=count,
        benefits=benefits or _benefits(material, count),
        files=files_of(logged.actions),
        where=f"{place_of(attempt)}: {plural(len(steps), 'step')} of its plan",
    )


def _proposal(material: Material, found: _Approach) -> Proposal:
    goal, at, count = material.goal, ended(material), found.iterations
    category = analyse_task(one_line(goal)).category or "implementation"
    approach: dict[str, object] = {"description": found.description, "steps": found.steps}
    if found.tools:
        approach["tools_used"] = found.tools
    approach["typical_iterations"] = {"average": float(count), "minimum": count, "maximum": count}
    record: dict[str, object] = {"type": "success_pattern", "task_category": category}
    if pattern := task_pattern(goal):
        record["task_description_pattern"] = pattern
    language = languages_of(goal, " ".join(material.criteria), " ".join(found.files))
    record |= {
        "approach": approach,
        "source_loops": [source(material, at, outcome="success", iterations_required=count)],
        "success_rate": 1.0,
        "usage_count": 1,
        "average_iterations": float(count),
        "preconditions": [f"What decides: {one_line(criterion)}" for criterion in material.criteria[:_MAX_STEPS]],
        "benefits": found.benefits,
        **first_use(at),
        "tags": list(dict.fromkeys(filter(None, (category, language, domain((goal,)))))),
    }
    if not record["preconditions"]:
        del record["preconditions"]
    return Proposal(type=PatternType.SUCCESS, slug=make_slug(goal, category), record=record, trace=(found.where,))


def task_pattern(task: str) -> str:
    """A regex that finds tasks worded like this one, for RE2; "" where its words are too few to say anything."""
    words = [found[0] for found in _WORD.finditer(one_line(task))]
    telling = [word for word in words[1:] if content_words(word)][: _TASK_WORDS - 1]
    if len(telling) < _TASK_WORDS - 1:
        return ""
    pattern = f"(?i){'.*'.join(map(_bounded, (words[0], *telling)))}"
    return pattern if safe_matcher(pattern).problem is None and safe_matcher(pattern).matches(task) else ""


def _bounded(word: str) -> str:
    """RE2 knows the bounds of ASCII words only; a word has letters, digits, `_` and `-`, none of them special."""
    return rf"\b{word}\b" if word.isascii() and word[-1] != "-" else re.escape(word)


def _steps(iterations: Sequence[Iteration]) -> tuple[list[str], str]:
    """What was done, in order, without what made it worse or failed repeatedly; and where that is told.

    External loops tell no action: what they say of their progress, or what they learned, stands for it.
    """
    steps: dict[str, str] = {}
    failed = _failed_steps(iterations)
    for place, iteration in enumerate(iterations):
        step = action(iteration) or strip_label(iteration.result) or strip_label("; ".join(iteration.learnings[:2]))
        if step and _plain(step) not in failed and not (place and _worse(iterations[place - 1], iteration)):
            steps.setdefault(step, str(iteration.number if iteration.number is not None else "?"))
    kept = dict(list(steps.items())[-_MAX_STEPS:])
    return list(kept), f"{plural(len(kept), 'step')} of iterations {', '.join(kept.values())}"


def _failed_steps(iterations: Sequence[Iteration]) -> set[str]:
    """Steps that failed several times and never helped, but for numbers in the same words."""
    missed: Counter[str] = Counter()
    helped: set[str] = set()
    before: int | None = None
    for iteration in iterations:
        step, fails = _plain(action(iteration)), failing(iteration)
        if passes(iteration) or (before is not None and fails is not None and fails < before):
            helped.add(step)
        elif iteration.failed or fails or any(in_iteration(iteration)):
            missed[step] += 1
        before = fails
    return {step for step, count in missed.items() if count >= _REPEATEDLY} - helped - {""}


def _plain(step: str) -> str:
    """A step without its numbers: `Raise the timeout to 20 s` and `to 30 s` are one."""
    return _NUMBER.sub("#", step.casefold())


def _worse(before: Iteration, after: Iteration) -> bool:
    """Whether an iteration left fewer tests passing, or a lower quality, than the one before it."""
    if passes(after):
        return False
    if before.quality is not None and after.quality is not None:
        return after.quality < before.quality
    failed, fails = failing(before), failing(after)
    return failed is not None and fails is not None and fails > failed


def _tools(iterations: Sequence[Iteration], loop: Loop) -> list[str]:
    tools = dict.fromkeys(one_line(tool, 80) for iteration in iterations for tool in iteration.tools[:_MAX_STEPS])
    for criterion in loop.criteria[:_MAX_STEPS]:
        for found in _COMMAND.finditer(one_line(criterion)):
            words = [word for word in found[0].split() if not _VERB.fullmatch(word) and word != "--"]
            if len(words) > 1 or words[0] in _ALONE:
                tools.setdefault(f"Bash ({' '.join(words)})")
    return list(tools)[:_MAX_STEPS]


def _benefits(material: Material, count: int) -> list[str]:
    """What the loop found out on its way to success, else how quickly it got there."""
    learned = [
        *(strip_label(text) for iteration in material.iterations if passes(iteration) for text in iteration.learnings),
        *(strip_label(reflection.text) for reflection in material.reflections if reflection.kind == "success_pattern"),
    ]
    return list(dict.fromkeys(filter(None, learned)))[:_MAX_BENEFITS] or [f"Completed in {plural(count, 'iteration')}"]
