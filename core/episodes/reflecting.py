"""Reflections on attempts: drafted from what happened, and laid out as the document has it (1) reflection_system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from core.episodes.log_summary import Failing, LogSummary
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import Reflection
from core.records.times import iso
from core.text import plural
from core.wording import line

TEMPLATE: Final = """\
## Reflection on Attempt {attempt_id}

**Observation**: What happened during this attempt?
{observation}

**Analysis**: Why did this happen?
{analysis}

**Learning**: What should be done differently?
{learning}

**Action Items**:
{action_items}
"""
"""(1) `reflection_template`, word for word."""
_ANSWERS: Final = re.sub(r"\*\*: [^\n]*\?\n", "**: ", TEMPLATE)
"""The layout of (1) `example_reflection`: the template without its questions."""
TRIGGERS: Final = ("failure", "success", "timeout", "manual")
"""(1) `triggered_by`."""
TYPES: Final = ("error-analysis", "success-pattern", "process-improvement")
"""(1) `reflection_type`."""
TYPE_OF: Final = {
    "attempt_failure": "error-analysis",
    "attempt_success": "success-pattern",
    "attempt_timeout": "process-improvement",
    "task_completion": "process-improvement",
}
"""(1) `reflection_triggers`, all of which generate a reflection: the type of each."""
TASK_COMPLETION: Final = "task_completion"
_MOST_TOLD: Final = 5
"""Files, failures and action items that a draft names; of further ones it gives the number."""
_UNSEEN: Final = "Drafted from the action log, which shows what was done and what failed, but not why."

_NOTHING_LEARNED: Final = "The log alone shows nothing to do differently; put it into words."


class Told(NamedTuple):
    """An attempt and what was done in it."""

    attempt: Attempt
    log: LogSummary


def attempt_trigger(outcome: Outcome) -> str:
    """(1) `reflection_triggers`: the trigger of an attempt that came out so."""
    return f"attempt_{outcome.value}"


def render_reflection(
    attempt_id: int,
    observation: str,
    analysis: str,
    learning: str,
    action_items: Sequence[str],
    *,
    asked: bool = True,
) -> str:
    """`TEMPLATE` filled in, the action items numbered as in (1) `example_reflection`; Markdown.

    Args:
        asked: With the questions of the template; without them it is laid out as the example is.
    """
    items = "\n".join(f"{number}. {item}" for number, item in enumerate(action_items, 1))
    texts = {"observation": observation, "analysis": analysis, "learning": learning, "action_items": items}
    return (TEMPLATE if asked else _ANSWERS).format(attempt_id=attempt_id, **texts)


def reflection_line(
    attempt_id: int,
    at: datetime,
    *,
    observation: str,
    analysis: str,
    learning: str,
    action_items: Sequence[str],
    triggered_by: str,
    reflection_type: str,
) -> dict[str, Any]:
    """A line of `reflections.jsonl` in the shape of (1) `reflection`."""
    return {
        "timestamp": iso(at),
        "attempt_id": attempt_id,
        "observation": observation,
        "analysis": analysis,
        "learning": learning,
        "action_items": list(action_items),
        "triggered_by": triggered_by,
        "reflection_type": reflection_type,
    }


def parts_of_draft(draft: Reflection) -> dict[str, Any]:
    """What somebody takes over who says a part of a draft better: the parts that tell something."""
    learning = draft.learning if draft.learning != _NOTHING_LEARNED else ""
    return {
        "observation": draft.observation,
        "analysis": draft.analysis,
        "learning": learning,
        "action_items": list(draft.actions),
    }


def draft_reflection(told: Told, at: datetime, earlier: Told | None = None) -> dict[str, Any]:
    """The reflection on an attempt that ended, as far as its log and its outcome speak for themselves.

    Args:
        told: The attempt, whose outcome is known.
        at: When it ended.
        earlier: The attempt before it, to tell what was different.

    Returns:
        A line of `reflections.jsonl`, marked with `draft` and with the `trigger` of (1) that asked for it.
    """
    attempt, log = told
    trigger = attempt_trigger(attempt.outcome)
    return reflection_line(
        attempt.number,
        at,
        observation=" ".join(_observation(told)),
        analysis=" ".join((*_analysis(told, earlier), _UNSEEN)),
        learning=" ".join(_learning(attempt, log)) or _NOTHING_LEARNED,
        action_items=list(_action_items(attempt, log))[:_MOST_TOLD],
        triggered_by=attempt.outcome.value,
        reflection_type=TYPE_OF[trigger],
    ) | {"trigger": trigger, "draft": True}


def draft_completion(
    attempts: Sequence[Attempt], at: datetime, log: LogSummary | None = None, failed: Told | None = None
) -> dict[str, Any]:
    """The reflection on a whole task that an attempt has completed; marked as a draft.

    Args:
        attempts: All of them, that one last.
        log: What was done in that one.
        failed: The last attempt before it that did not reach the goal.
    """
    last = Told(attempts[-1], log or LogSummary())
    actions, errors = sum(one.actions or 0 for one in attempts), sum(one.errors or 0 for one in attempts)
    observation = (
        f"The task was completed by attempt {last.attempt.number}, after {plural(len(attempts), 'attempt')} with "
        f"{plural(actions, 'action')} and {plural(errors, 'error')} in all."
    )
    if failed is None:
        planned = f" It planned: {line(last.attempt.plan)}." if last.attempt.plan else ""
        analysis, learning = "No attempt before it failed.", f"The approach carried at once.{planned}"
    else:
        reason = _sentence(failed.attempt.reason or failed.attempt.outcome.value)
        analysis = f"Attempt {failed.attempt.number} did not reach the goal: {reason}"
        learning = " ".join(_made_the_difference(last, failed)) or _NOTHING_LEARNED
    return reflection_line(
        last.attempt.number,
        at,
        observation=observation,
        analysis=f"{analysis} {_UNSEEN}",
        learning=learning,
        action_items=list(dict.fromkeys(line(item) for one in attempts for item in one.suggestions))[-_MOST_TOLD:],
        triggered_by=Outcome.SUCCESS.value,
        reflection_type=TYPE_OF[TASK_COMPLETION],
    ) | {"trigger": TASK_COMPLETION, "draft": True}


def _observation(told: Told) -> Iterator[str]:
    attempt, log = told
    reason = f": {_sentence(attempt.reason)}" if attempt.reason else "."
    yield f"Attempt {attempt.number} ended in {attempt.outcome.value}{reason}"
    iterations = f" in {plural(log.iterations, 'iteration')}" if log.iterations else ""
    if log.actions:
        yield f"It took {plural(log.actions, 'action')}{iterations}, of which {log.errors:,} failed."
    else:
        yield "No action was logged."
    for failing in log.failures[:1]:
        yield f"{_how_often(failing, log)}: {_quoted(failing)}."
    if log.files:
        yield f"Changed: {_listed(log.files)}."
    if len(attempt.quality) > 1:
        first, last = attempt.quality[0].quality, attempt.quality[-1].quality
        yield f"Quality went from {first:.2f} to {last:.2f}."
    elif attempt.final_quality is not None:
        yield f"Its quality was {attempt.final_quality:.2f}."


def _analysis(told: Told, earlier: Told | None) -> Iterator[str]:
    attempt, log = told
    for failing in log.failures[:_MOST_TOLD]:
        how = f" after changes to {_listed(failing.changed)}" if failing.changed else ""
        if failing.solved:
            yield f"{_quoted(failing)} went away{how}."
        elif failing.replaced:
            yield f"{_quoted(failing)} did not come again, but `{failing.what}` failed with another error."
        else:
            yield f"{_quoted(failing)} was not checked again{how}."
    if attempt.failed:
        yield f"Did not work: {_listed(attempt.failed)}."
    if earlier is not None:
        yield from _differences(told, earlier)


def _made_the_difference(told: Told, failed: Told) -> Iterator[str]:
    """What an attempt that reached the goal did otherwise than one that did not."""
    (attempt, log), number = told, failed.attempt.number
    if attempt.plan and attempt.plan != failed.attempt.plan:
        instead = f"; {_quote(failed.attempt.plan)} did not" if failed.attempt.plan else ""
        yield f"{_quote(attempt.plan)} reached the goal{instead}."
    new = [file for file in log.files if file not in failed.log.files]
    if new:
        yield f"Unlike attempt {number} it changed {_listed(new)}."
    if attempt.worked:
        yield f"Worked: {_listed(attempt.worked)}."


def _differences(told: Told, earlier: Told) -> Iterator[str]:
    number = earlier.attempt.number
    if told.attempt.plan and earlier.attempt.plan and told.attempt.plan != earlier.attempt.plan:
        yield f"Attempt {number} planned {_quote(earlier.attempt.plan)}, this one {_quote(told.attempt.plan)}."
    new = [file for file in told.log.files if file not in earlier.log.files]
    if new and earlier.log.files:
        yield f"Unlike attempt {number} it changed {_listed(new)}."
    again = {(one.what, one.message) for one in earlier.log.failures}
    repeated = [one for one in told.log.failures if (one.what, one.message) in again]
    if repeated:
        yield f"{_quoted(repeated[0])} had failed in attempt {number} already."


def _learning(attempt: Attempt, log: LogSummary) -> Iterator[str]:
    unsolved = [failing for failing in log.failures if not (failing.solved or failing.replaced)]
    solved = [failing for failing in log.failures if failing.solved and failing.changed]
    if attempt.outcome is Outcome.SUCCESS and attempt.plan:
        yield f"This approach succeeded: {_sentence(attempt.plan)}"
    if attempt.worked:
        yield f"Worked: {_listed(attempt.worked)}."
    if attempt.failed:
        yield f"Avoid: {_listed(attempt.failed)}."
    if attempt.outcome is not Outcome.SUCCESS and unsolved:
        yield f"Expect {_quoted(unsolved[0])}: the log does not show that it was solved."
    if solved:
        yield f"{_quoted(solved[0])} can be solved in {_listed(solved[0].changed)}."
    if attempt.suggestions:
        yield f"Next time: {_listed(attempt.suggestions)}."


def _action_items(attempt: Attempt, log: LogSummary) -> Iterator[str]:
    yield from (line(suggestion) for suggestion in attempt.suggestions)
    if attempt.outcome is Outcome.SUCCESS:
        return
    for failing in log.failures:
        if failing.solved or failing.replaced:
            continue
        if failing.changed:
            yield f"Check again after the changes to {_listed(failing.changed)}: {_quoted(failing)}"
        else:
            yield f"Find the cause of {_quoted(failing)} before changing anything else"
    if attempt.outcome is Outcome.TIMEOUT:
        yield "Plan fewer or smaller steps, or allow more time"


def _how_often(failing: Failing, log: LogSummary) -> str:
    """The words before the failure that a draft names first."""
    if len(log.failures) == 1:
        return f"What failed ({plural(failing.times, 'time')})"
    if failing.runs == 1:
        return "What failed first"
    errors = "" if failing.times == failing.runs else ", with different errors"
    return f"Most often failed ({plural(failing.runs, 'time')}{errors})"


def _quoted(failing: Failing) -> str:
    return f"`{failing.what}`: {failing.message.rstrip('.')}"


def _quote(text: str) -> str:
    return f'"{line(text)}"'


def _sentence(text: str) -> str:
    return f"{line(text).rstrip('.')}."


def _listed(texts: Sequence[str]) -> str:
    told = "; ".join(line(text) for text in texts[:_MOST_TOLD])
    rest = len(texts) - _MOST_TOLD
    return f"{told}; and {rest:,} more" if rest > 0 else told
