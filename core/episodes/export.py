"""The history of a task as Markdown: the layout is ours, every text of the files stays data in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from core.episodes.history import AttemptDetail, WholeHistory
from core.episodes.reflecting import render_reflection
from core.episodes.replay import Step, steps
from core.prompt_text import bare, field
from core.records.episodes import Action, Attempt, Milestone
from core.records.reflections import Reflection
from core.sources.actions import MAX_TEXT
from core.text import plural, visible

_BACKTICKS: Final = re.compile("`+")
_SHORT: Final = 200
MAX_LISTED: Final = 500
"""Actions of one attempt that the history of a whole task lists, the last ones; that of the attempt tells all."""


def history_markdown(whole: WholeHistory) -> str:
    """The task and its attempts, each with its steps, actions on a line each, results, and what was learned from it."""
    history, task = whole.task, whole.task.task
    head = [f"# Task {_line(task.id)}", ""]
    if task.description:
        head += [_prose(task.description), ""]
    facts = (
        ("Status", task.status.value),
        ("Done when", _line(task.criteria)),
        ("Created", _time(task.created_at)),
        ("Updated", _time(task.updated_at)),
        ("Completed", _time(task.completed_at)),
        ("Tags", ", ".join(map(_line, task.tags))),
        ("Related", ", ".join(map(_line, task.related))),
        ("Quality", _rate(history.final_quality)),
        ("Completion", _rate(history.completion)),
    )
    parts = ["\n".join([*head, *_list(facts)]), *_milestones(one for one in history.milestones if one.attempt is None)]
    numbers = {detail.attempt.number for detail in whole.attempts}
    for detail in whole.attempts:
        parts.append(_attempt(detail.attempt, detail.steps))
        parts += _quality(detail.attempt)
        parts += _milestones(one for one in history.milestones if one.attempt == detail.attempt.number)
        parts += _actions(detail)
        parts += _results(detail)
        parts += map(reflection_markdown, detail.reflections)
    parts += map(reflection_markdown, (one for one in history.reflections if one.attempt not in numbers))
    return "\n\n".join(parts) + "\n"


def attempt_markdown(detail: AttemptDetail) -> str:
    """One attempt: the plan, every action with what was expected and what came of it, and what was learned."""
    attempt = detail.attempt
    parts = [f"# Task {_line(attempt.task_id)}", _attempt(attempt)]
    if detail.plan_text.strip():
        parts += ["### Plan", fenced(detail.plan_text, "markdown")]
    parts += _quality(attempt)
    parts += _milestones(detail.milestones)
    if detail.actions:
        parts.append("### Actions")
        parts += map(_step, steps(detail))
    parts += _results(detail)
    parts += map(reflection_markdown, detail.reflections)
    return "\n\n".join(parts) + "\n"


def reflections_markdown(reflections: Iterable[Reflection]) -> str:
    """Reflections alone, in the template of (1)."""
    return "\n\n".join(map(reflection_markdown, reflections)) + "\n"


def reflection_markdown(one: Reflection) -> str:
    """One reflection in the template of (1), and whether it is a draft."""
    text = render_reflection(
        one.attempt or 0,
        _prose(one.observation),
        _prose(one.analysis),
        _prose(one.learning),
        [*map(_line, one.actions)],
    )
    return f"{text.rstrip()}\n\n*A draft that nobody has reviewed.*" if one.draft else text.rstrip()


def fenced(text: str, language: str = "") -> str:
    """`text` as a block of code that nothing in it can end."""
    text = visible(text, MAX_TEXT)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _attempt(attempt: Attempt, plan_steps: Iterable[str] = ()) -> str:
    came_out = "open" if attempt.is_open else attempt.outcome.value
    facts = (
        ("Plan", _line(attempt.plan)),
        *(("Step", _line(text)) for text in plan_steps),
        ("Agent", _line(attempt.agent)),
        ("Started", _time(attempt.started_at)),
        ("Ended", _time(attempt.ended_at)),
        ("Iterations", _count(attempt.iterations)),
        ("Actions", _count(attempt.actions)),
        ("Failed actions", _count(attempt.errors)),
        ("Quality", _rate(attempt.final_quality)),
        ("Completion", _rate(attempt.completion)),
        ("Reason", _line(attempt.reason)),
        *(("Worked", _line(text)) for text in attempt.worked),
        *(("Did not work", _line(text)) for text in attempt.failed),
        *(("Next time", _line(text)) for text in attempt.suggestions),
    )
    return "\n".join([f"## Attempt {attempt.number}: {came_out}", "", *_list(facts)]).rstrip()


def _quality(attempt: Attempt) -> Iterator[str]:
    if attempt.quality:
        told = (f"{'' if one.iteration is None else one.iteration}: {_rate(one.quality)}" for one in attempt.quality)
        yield "\n".join(["### Quality by iteration", "", *(f"- {text}" for text in told)])


def _results(detail: AttemptDetail) -> Iterator[str]:
    if detail.results:
        yield "\n".join(["### Results", "", *(f"- {_line(name)}" for name in detail.results)])


def _actions(detail: AttemptDetail) -> Iterator[str]:
    """The last actions on a line each: what was done, how it came out, and the error."""
    if not detail.actions:
        return
    yield "### Actions"
    left_out = len(detail.actions) - MAX_LISTED
    if left_out > 0:
        yield f"*{plural(left_out, 'earlier action')} left out; the export of this attempt alone has them.*"
    listed = map(Step, detail.actions[max(left_out, 0) :])
    yield "\n".join(f"- {_heading(step)}{_error(step.action)}" for step in listed)


def _error(action: Action) -> str:
    return f" ({_line(action.error, _SHORT)})" if action.went_wrong and action.error.strip() else ""


def _heading(step: Step) -> str:
    """Number, type, tool and what an action was about, and how it came out."""
    action = step.action
    tool = action.tool if action.tool.lower() != action.type.lower() else ""
    what = " ".join(filter(None, (_line(text, _SHORT) for text in (action.type, tool, action.about))))
    return f"{action.number}. {what or 'action'}: {step.verdict.value}"


def _step(step: Step) -> str:
    action = step.action
    facts = (
        ("At", _time(action.at)),
        ("Iteration", _count(action.iteration)),
        ("Why", _line(action.reasoning)),
        ("Expected", _line(step.expected)),
    )
    parts = ["\n".join([f"#### {_heading(step)}", "", *_list(facts)]).rstrip()]
    if step.diff:
        parts.append(fenced("\n".join(step.diff), "diff"))
    if step.real:
        parts.append(fenced(step.real))
    return "\n\n".join(parts)


def _milestones(milestones: Iterable[Milestone]) -> Iterator[str]:
    lines = [f"- {_time(one.at) or 'no time'}: {_line(f'{one.event} {one.details}')}" for one in milestones]
    if lines:
        yield "\n".join(["### Milestones", "", *lines])


def _list(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"- {name}: {text}" for name, text in facts if text)


def _line(text: str, limit: int = MAX_TEXT) -> str:
    return field(" ".join(text.split()), limit)


def _prose(text: str) -> str:
    """Untrusted lines of which none begins a heading, a list or any other block."""
    return "\n".join(bare(line, MAX_TEXT) for line in text[:MAX_TEXT].splitlines() if line.strip())


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC" if at else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.2f}"
