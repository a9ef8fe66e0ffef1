"""Success patterns: approaches that worked; docs/extraction.md#success-patterns."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.record_text import make_slug, one_line, strip_label
from core.base.regexes import lazy_regex
from core.base.text import plural, safe_matcher
from core.questions.extraction.errors import count_failing, find_errors
from core.questions.extraction.fix_kinds import MIN_DESCRIPTION, detect_domain, mentioned_language
from core.questions.extraction.fixes import describe_action, describe_attempt, has_passed, list_files, list_tools
from core.questions.extraction.own_reflections import find_reflected_steps
from core.questions.extraction.record_parts import find_end, make_proposal, make_source
from core.records.loops import Iteration, Loop, LoopStatus, Outcome
from core.records.patterns import PatternType
from core.retrieval.task import analyse_task, content_words

if TYPE_CHECKING:
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
    found = _find_in_loop(material) or _find_in_attempts(material)
    if found is None or not material.goal.strip() or not _is_detailed(found):
        return
    if adds_steps(found.steps, fixes):
        yield _make_proposal(material, found)


def adds_steps(steps: Iterable[str], fixes: Sequence[str]) -> bool:
    """Return whether the steps of an approach are worth a pattern beside those of these fixes."""
    return not fixes or sum(not _repeats(step, fixes) for step in steps) >= _MIN_SEQUENCE


def _repeats(step: str, fixes: Iterable[str]) -> bool:
    """Return whether a step says the same as a fix, or one of them is part of the other."""
    text = step.casefold().rstrip(".")
    others = (one_line(fix).casefold().rstrip(".") for fix in fixes)
    return any(other in text or text in other for other in others if other)


def explain_no_approach(material: Material) -> str:
    found = _find_in_loop(material) or _find_in_attempts(material)
    if found is None:
        loop = material.loop
        if loop is None:
            return "no attempt succeeded"
        if loop.success and loop.is_conversation:
            return "the messages of one session are not the steps of an approach"
        if loop.success:
            return "no iteration was recorded"
        is_claimed = loop.status is LoopStatus.COMPLETED
        return "its success is not proven" if is_claimed else f"the goal was not reached (the loop is {loop.status})"
    return "no task is known" if _is_detailed(found) else "the recorded steps are too short"


def _is_detailed(found: _Approach) -> bool:
    return sum(map(len, found.steps)) >= MIN_DESCRIPTION


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


def _make_proposal(material: Material, found: _Approach) -> Proposal:
    goal, at, count = material.goal, find_end(material), found.iterations
    category = analyse_task(one_line(goal)).category or "implementation"
    approach = {
        "description": found.description,
        "steps": found.steps,
        **({"tools_used": found.tools} if found.tools else {}),
        "typical_iterations": {"average": float(count), "minimum": count, "maximum": count},
    }
    language = mentioned_language(goal, " ".join(material.criteria), " ".join(found.files))
    return make_proposal(
        PatternType.SUCCESS,
        make_slug(goal, category),
        {"task_category": category, "task_description_pattern": task_pattern(goal) or None, "approach": approach},
        sources=[make_source(material.loop_id, at, outcome="success", iterations_required=count)],
        at=at,
        tags=(category, language, detect_domain((goal,))),
        trace=(found.where,),
        average_iterations=float(count),
        benefits=found.benefits or None,
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
        for found in _COMMAND.finditer(one_line(criterion)):
            words = [word for word in found[0].split() if not _VERB.fullmatch(word) and word != "--"]
            if len(words) > 1 or words[0] in _ALONE:
                tools.setdefault(f"Bash ({' '.join(words)})")
    return list(tools)[:_MAX_STEPS]


def _list_benefits(material: Material) -> list[str]:
    """Return the learnings of successful iterations and reflections."""
    learned = [text for iteration in material.iterations if has_passed(iteration) for text in iteration.learnings]
    learned += [reflection.text for reflection in material.reflections if reflection.kind == "success_pattern"]
    return list(dict.fromkeys(filter(None, map(strip_label, learned))))[:_MAX_BENEFITS]
