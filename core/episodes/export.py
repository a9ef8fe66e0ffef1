"""The history of a task as Markdown: the layout is ours, every text of the files stays data in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

from core.base.prompt_text import escape_inline, escape_line
from core.base.text import plural, visible
from core.episodes.history import AttemptDetail, WholeHistory
from core.episodes.reflection_drafts import render_reflection
from core.episodes.replay import ReplayStep, steps
from core.records.episodes import Action, Attempt, Milestone
from core.records.reflections import Reflection
from core.records.times import day_of
from core.sources.actions import MAX_TEXT, to_text
from core.storage.json_reader import decode_json

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
        ("Current attempt", _count(task.current_attempt)),
        ("Attempts in all", _count(task.total_attempts)),
        ("Agent", _line(task.agent)),
        ("Loop", _line(task.loop_id)),
        ("Tags", ", ".join(map(_line, task.tags))),
        ("Related", ", ".join(map(_line, task.related))),
        ("Quality", _rate(history.final_quality)),
        ("Completion", _rate(history.completion)),
    )
    parts = ["\n".join([*head, *_list(facts)]), *_summary(history.summary)]
    parts += _milestones(one for one in history.milestones if one.attempt is None)
    numbers = {detail.attempt.number for detail in whole.attempts}
    for detail in whole.attempts:
        parts.append(_attempt(detail))
        parts += _plan(detail)
        parts += _quality(detail.attempt)
        parts += _milestones(one for one in history.milestones if one.attempt == detail.attempt.number)
        parts += _actions(detail)
        parts += _results(detail)
        parts += map(reflection_markdown, detail.reflections)
    parts += map(reflection_markdown, (one for one in history.reflections if one.attempt not in numbers))
    return "\n\n".join(parts) + "\n"


def attempt_markdown(detail: AttemptDetail) -> str:
    """One attempt: the plan, every action with what was expected and all that came of it, and what was learned."""
    attempt = detail.attempt
    parts = [f"# Task {_line(attempt.task_id)}", _attempt(detail), *_plan(detail)]
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
    """One reflection in the template of (1); below it its time, kind and trigger, and what it is worth."""
    text = render_reflection(
        one.attempt or 0,
        _prose(one.observation),
        _prose(one.analysis),
        _prose(one.learning),
        [*map(_line, one.actions)],
    )
    if one.attempt is None:
        text = text.replace("## Reflection on Attempt 0", "## Reflection on the task", 1)
    triggered = f"triggered by {one.trigger}" if one.trigger else ""
    at = f"about {_time(one.at)}" if one.at_approximate else _time(one.at)
    facts = "; ".join(filter(None, (at, one.kind.replace("_", "-"), triggered)))
    state = ". A draft that nobody has reviewed." if one.draft else ""
    state = ". A later one says it better." if one.superseded else state
    return f"{text.rstrip()}\n\n*{facts or 'no time'}{state}*"


def fenced(text: str, language: str = "") -> str:
    """`text` as a block of code that nothing in it can end."""
    text = visible(text, MAX_TEXT)
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _plan(detail: AttemptDetail) -> Iterator[str]:
    if detail.plan_text.strip():
        yield from ("### Plan", fenced(detail.plan_text, "markdown"))


def _summary(summary: Iterable[tuple[str, str]]) -> Iterator[str]:
    lines = [line for name, text in summary for line in _summed_up(_line(name), text)]
    if lines:
        yield "\n".join(["### Summary", "", *lines])


def _summed_up(name: str, text: str) -> Iterator[str]:
    """One entry of a summary; a list of it on a line each, and what it knows nothing of not at all."""
    told = decode_json(text.encode("utf-8", "replace")).value if text[:1] in ("[", "{") else None
    if told == [] or told == {} or not text:
        return
    if not isinstance(told, list):
        yield f"- {name}: {_line(_spelled(told) if isinstance(told, dict) else text)}"
        return
    yield f"- {name}:"
    yield from (f"  - {_line(_spelled(item))}" for item in told[-MAX_LISTED:])


def _spelled(value: Any) -> str:
    """A JSON value as a person writes it: a learning as `attempt 1: types first`, else `passed 3, failed 0`."""
    if not isinstance(value, dict):
        return to_text(value)
    if isinstance(value.get("learning"), str):
        attempt = value.get("attempt_id")
        of = "" if attempt is None else f"attempt {to_text(attempt)}: "
        return f"{of}{value['learning']}{' (draft)' if value.get('draft') is True else ''}"
    return ", ".join(f"{name.replace('_', ' ')} {to_text(item)}" for name, item in value.items() if item is not None)


def _attempt(detail: AttemptDetail) -> str:
    attempt = detail.attempt
    came_out = "open" if attempt.is_open else attempt.outcome.value
    facts = (
        ("Plan", _line(attempt.plan)),
        *(("Step", _line(text)) for text in detail.steps),
        ("Iterations planned", _count(detail.estimated_iterations)),
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
        lines = []
        for one in attempt.quality:
            number = "" if one.iteration is None else one.iteration
            lines.append(f"- {number}: {_rate(one.quality)}{f' ({one.change})' if one.change else ''}")
        yield "\n".join(["### Quality by iteration", "", *lines])


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
    listed = map(ReplayStep, detail.actions[max(left_out, 0) :])
    yield "\n".join(f"- {_heading(step)}{_error(step.action)}" for step in listed)


def _error(action: Action) -> str:
    return f" ({_line(action.error, _SHORT)})" if action.has_failed and action.error.strip() else ""


def _heading(step: ReplayStep) -> str:
    """Number, type, tool and what an action was about, and how it came out."""
    action = step.action
    tool = action.tool if action.tool.lower() != action.type.lower() else ""
    what = " ".join(filter(None, (_line(text, _SHORT) for text in (action.type, tool, action.about))))
    return f"{action.number}. {what or 'action'}: {step.verdict.value}"


def _step(step: ReplayStep) -> str:
    action = step.action
    facts = (
        ("At", _time(action.at)),
        ("Iteration", _count(action.iteration)),
        ("Why", _line(action.reasoning)),
        ("Expected", _line(step.expected)),
    )
    parts = ["\n".join([f"#### {_heading(step)}", "", *_list(facts)]).rstrip()]
    for name, text in step.params:
        parts.append(f"{_line(name, _SHORT)}:\n\n{fenced(text)}")
    if step.diff:
        parts.append(fenced("\n".join(step.diff), "diff"))
    parts += (fenced(text) for text in (action.error.strip() or action.output, step.output) if text.strip())
    return "\n\n".join(parts)


def _milestones(milestones: Iterable[Milestone]) -> Iterator[str]:
    lines = [f"- {_time(one.at) or 'no time'}: {_line(f'{one.event} {one.details}')}" for one in milestones]
    if lines:
        yield "\n".join(["### Milestones", "", *lines])


def _list(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    return (f"- {name}: {text}" for name, text in facts if text)


def _line(text: str, limit: int = MAX_TEXT) -> str:
    return escape_inline(" ".join(text.split()), limit)


def _prose(text: str) -> str:
    """Untrusted lines of which none begins a heading, a list or any other block."""
    return "\n".join(escape_line(line, MAX_TEXT) for line in text[:MAX_TEXT].splitlines() if line.strip())


def _time(at: datetime | None) -> str:
    return f"{day_of(at)} {at:%H:%M:%S} UTC" if at else ""


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.2f}"
