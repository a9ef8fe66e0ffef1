"""Reflections on attempts: drafted from what happened, and laid out as the document has it (1) reflection_system."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from core.base.record_text import one_line
from core.base.text import plural
from core.episodes.log_summary import CHECK, COMMAND, TOOL, LoggedFailure, LogSummary
from core.learning.outcomes import took
from core.records.episodes import Attempt
from core.records.loops import Outcome
from core.records.reflections import NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL, Reflection
from core.records.times import iso

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
LEFT: Final = "left unfinished"
"""Reason of an attempt that was given up when another one began."""
_MOST_TOLD: Final = 5
"""Files, failures and action items that a draft names; of further ones it gives the number."""
_MOST_LEARNED: Final = 2
"""Failures that went away, of which a draft makes a learning."""
_MAX_MESSAGE: Final = 160
"""Characters of an error that a draft tells."""
_UNSEEN: Final = "Drafted from the action log, which shows what was done and what failed, but not why."
"""The last sentence of the analysis of a draft, and of nothing else."""
_NOT_SAID: Final = "Not said."
_NO_ITEMS: Final = "None."
_ENDS: Final = tuple(".!?…。！？")
_RANKS: Final = (CHECK, COMMAND, TOOL)
"""What failed by how much it says about the work: a file that was looked for in vain says least."""


class AttemptWork(NamedTuple):
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

    Where nothing was said it says so.

    Args:
        asked: With the questions of the template; without them it is laid out as the example is.
    """
    items = "\n".join(f"{number}. {item}" for number, item in enumerate(action_items, 1)) or _NO_ITEMS
    texts = {"observation": observation, "analysis": analysis, "learning": learning}
    texts = {name: text or _NOT_SAID for name, text in texts.items()} | {"action_items": items}
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
    """What somebody takes over who says a part of a draft better: the parts that tell something, and not that it was
    a draft.
    """
    return {
        "observation": draft.observation,
        "analysis": draft.analysis.removesuffix(_UNSEEN).rstrip(),
        "learning": draft.learning if draft.teaches else "",
        "action_items": list(draft.actions),
    }


def draft_reflection(told: AttemptWork, at: datetime, earlier: AttemptWork | None = None) -> dict[str, Any]:
    """The reflection on an attempt that ended, as far as its log and its outcome speak for themselves.

    Args:
        told: The attempt, whose outcome is known.
        at: When it ended.
        earlier: The attempt before it, to tell what was different.

    Returns:
        A line of `reflections.jsonl`, marked with `draft` and with the `trigger` of (1) that asked for it.
    """
    attempt = told.attempt
    trigger = attempt_trigger(attempt.outcome)
    return reflection_line(
        attempt.number,
        at,
        observation=" ".join(_observation(told)),
        analysis=" ".join((*_analysis(told, earlier), _UNSEEN)),
        learning=" ".join(_learning(told, earlier)) or NOTHING_LEARNED,
        action_items=list(dict.fromkeys(_action_items(told, earlier)))[:_MOST_TOLD],
        triggered_by=attempt.outcome.value,
        reflection_type=TYPE_OF[trigger],
    ) | {"trigger": trigger, "draft": True}


def draft_completion(
    attempts: Sequence[Attempt],
    at: datetime,
    log: LogSummary | None = None,
    failed: AttemptWork | None = None,
    *,
    given_up: bool = False,
) -> dict[str, Any]:
    """The reflection on a whole task that an attempt has ended; marked as a draft.

    Args:
        attempts: All of them, that one last.
        log: What was done in that one.
        failed: The last attempt that did not reach the goal: before that one, or that one itself.
        given_up: The task ended without its goal. Nothing of (1) tells such an end from the other.
    """
    last = AttemptWork(attempts[-1], log or LogSummary())
    how = "given up after" if given_up else "completed by"
    learning = _in_vain(attempts, last) if given_up else _made_the_difference(last, failed) if failed else ()
    return reflection_line(
        last.attempt.number,
        at,
        observation=f"The task was {how} attempt {last.attempt.number}. {_in_all(attempts)}",
        analysis=f"{_why_no_sooner(failed)} {_UNSEEN}",
        learning=" ".join(learning) or NOTHING_LEARNED_IN_ALL,
        action_items=list(dict.fromkeys(one_line(item) for one in attempts for item in one.suggestions))[-_MOST_TOLD:],
        triggered_by=last.attempt.outcome.value if given_up else Outcome.SUCCESS.value,
        reflection_type=TYPE_OF[TASK_COMPLETION],
    ) | {"trigger": TASK_COMPLETION, "draft": True}


def _in_all(attempts: Sequence[Attempt]) -> str:
    actions, errors = sum(one.actions or 0 for one in attempts), sum(one.errors or 0 for one in attempts)
    whose = "Its only attempt" if len(attempts) == 1 else f"Its {len(attempts):,} attempts"
    return f"{_took(actions, errors, whose)}." if actions else "No action was logged."


def _why_no_sooner(failed: AttemptWork | None) -> str:
    if failed is None:
        return "No attempt before it failed."
    reason = _sentence(failed.attempt.reason or failed.attempt.outcome.value)
    return f"Attempt {failed.attempt.number} did not reach the goal: {reason}"


def _in_vain(attempts: Sequence[Attempt], last: AttemptWork) -> Iterator[str]:
    """What a task that was given up teaches those who try the like."""
    if plans := list(dict.fromkeys(_quote(one.plan) for one in attempts if one.plan)):
        yield f"Did not reach the goal: {_listed(plans)}."
    for failing in _open(last.log)[:1]:
        yield f"What stood in the way last: {_in_full(failing)}."


def _observation(told: AttemptWork) -> Iterator[str]:
    attempt, log = told
    reason = f": {_sentence(attempt.reason)}" if attempt.reason else "."
    yield f"Attempt {attempt.number} ended in {attempt.outcome.value}{reason}"
    if log.actions:
        spans = [plural(log.iterations, "iteration")] if log.iterations else []
        within = " and ".join((*spans, *_how_long(attempt)))
        yield f"{_took(log.actions, log.errors)}{f', in {within}' if within else ''}."
    else:
        yield "No action was logged."
    failures = _ranked(log)
    for failing in failures[:1]:
        yield f"`{failing.what}` failed {_how_often(failing)}: {_message(failing)}."
    others = list(dict.fromkeys(f"`{one.what}`" for one in failures if one.what != failures[0].what))
    if others:
        yield f"Also failed: {_listed(others)}."
    if log.files:
        yield f"Changed: {_listed(log.files)}."
    if len(attempt.quality) > 1:
        yield _course(attempt)
    elif attempt.final_quality is not None:
        yield f"Its quality was {attempt.final_quality:.2f}."


def _how_long(attempt: Attempt) -> Iterator[str]:
    """Of a timeout, where it matters."""
    if attempt.outcome is Outcome.TIMEOUT and attempt.started_at is not None and attempt.ended_at is not None:
        seconds = (attempt.ended_at - attempt.started_at).total_seconds()
        if seconds > 0:
            yield took(seconds * 1000)


def _course(attempt: Attempt) -> str:
    values = [one.quality for one in attempt.quality]
    best = max(values)
    peak = f", at best {best:.2f}" if best > max(values[0], values[-1]) else ""
    return f"Quality went from {values[0]:.2f} to {values[-1]:.2f}{peak}."


def _analysis(told: AttemptWork, earlier: AttemptWork | None) -> Iterator[str]:
    failures = _ranked(told.log)
    for number, failing in enumerate(failures[:_MOST_TOLD]):
        # The observation has told the message of the first one, and no other of the same command.
        told_before = number == 0 and failing.runs == failing.times
        name = f"`{failing.what}`" if told_before else f"`{failing.what}` ({_message(failing)})"
        if course := _what_became(failing):
            yield f"{name} {course}."
    if earlier is not None:
        yield from _differences(told, earlier)


def _what_became(failing: LoggedFailure) -> str:
    """In words that follow its name; "" where there is nothing to tell."""
    if failing.solved:
        if what := _what_helped(failing):
            return f"no longer failed after {what}"
        return "came out well later, with no change logged in between"
    if failing.replaced:
        return "did not fail with this error again, but with another one"
    if failing.of == TOOL:
        return ""
    tried = f" after changes to {_listed(failing.tried)}" if failing.tried else ""
    kept = f"failed again{tried}" if failing.times > 1 else ""
    left = f"was not run again after changes to {_listed(failing.changed)}" if failing.changed else ""
    return ", and ".join(filter(None, (kept, left))) or "was not run again"


def _what_helped(failing: LoggedFailure) -> str:
    """What came between a failure and its solution: what was changed, else what was run."""
    if failing.changed:
        return f"changes to {_listed(failing.changed)}"
    return _listed([f"`{command}`" for command in failing.ran])


def _made_the_difference(told: AttemptWork, failed: AttemptWork) -> Iterator[str]:
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


def _differences(told: AttemptWork, earlier: AttemptWork) -> Iterator[str]:
    number = earlier.attempt.number
    if told.attempt.plan and told.attempt.plan == earlier.attempt.plan:
        yield f"The plan was that of attempt {number}."
    elif told.attempt.plan and earlier.attempt.plan:
        yield f"Attempt {number} planned {_quote(earlier.attempt.plan)}, this one {_quote(told.attempt.plan)}."
    new = [file for file in told.log.files if file not in earlier.log.files]
    if new and earlier.log.files:
        yield f"Unlike attempt {number} it changed {_listed(new)}."


def _learning(told: AttemptWork, earlier: AttemptWork | None) -> Iterator[str]:
    attempt, log = told
    learned = False
    for sentence in _lessons(attempt, log, earlier):
        learned = True
        yield sentence
    if attempt.suggestions and not learned:  # they are the action items, too
        yield f"Next time: {_listed(attempt.suggestions)}."


def _lessons(attempt: Attempt, log: LogSummary, earlier: AttemptWork | None) -> Iterator[str]:
    if attempt.outcome is Outcome.SUCCESS and attempt.plan:
        yield f"This approach succeeded: {_sentence(attempt.plan)}"
    if attempt.worked:
        yield f"Worked: {_listed(attempt.worked)}."
    if attempt.failed:
        yield f"Avoid: {_listed(attempt.failed)}."
    if attempt.outcome is not Outcome.SUCCESS:
        for failing in _open(log)[:1]:
            known = "Not known to be solved" if failing.changed else "Not solved"
            yield f"{known}: {_in_full(failing)}{_in_spite_of(failing, earlier)}."
    for failing in [one for one in _ranked(log) if one.solved and one.of != TOOL][:_MOST_LEARNED]:
        if failing.changed:
            yield f"{_in_full(failing)} until {_listed(failing.changed)} changed."
        elif failing.ran:
            yield f"{_in_full(failing)} until {_what_helped(failing)} was run."
        else:
            came_back = f"{_in_full(failing)} and later came out well with no change logged in between"
            yield f"{came_back}: run it again before looking for a cause."


def _in_spite_of(failing: LoggedFailure, earlier: AttemptWork | None) -> str:
    """What did not solve a failure, and whether the attempt before had the same."""
    again = {(one.what, one.message) for one in earlier.log.failures} if earlier is not None else set()
    number = earlier.attempt.number if earlier is not None else 0
    before = f", as in attempt {number}" if (failing.what, failing.message) in again else ""
    return f"{before}, also after changes to {_listed(failing.tried)}" if failing.tried else before


def _action_items(told: AttemptWork, earlier: AttemptWork | None) -> Iterator[str]:
    attempt, log = told
    yield from (one_line(suggestion) for suggestion in attempt.suggestions)
    succeeded = attempt.outcome is Outcome.SUCCESS
    failing = [one for one in _open(log) if one.of == CHECK or not (succeeded or one.of == TOOL)]
    again = list(dict.fromkeys(f"`{one.what}`" for one in failing if one.changed))
    if again:
        yield f"Run again what failed and was not run after the last changes: {_listed(again)}"
    unclear = [name for name in dict.fromkeys(f"`{one.what}`" for one in failing) if name not in again]
    if unclear:
        when = " before changing more" if any(one.tried for one in failing) else ""
        yield f"Find out what makes {unclear[0]} fail{when}" + (f"; then {_listed(unclear[1:])}" if unclear[1:] else "")
    if succeeded:
        return
    if earlier is not None and attempt.plan and attempt.plan == earlier.attempt.plan and not _reached(earlier):
        yield f"Plan something else than {_quote(attempt.plan)}, which missed the goal twice"
    if not log.actions:
        yield "Log what is done, so that the next attempt can learn from it"
    elif attempt.outcome is Outcome.TIMEOUT and attempt.reason != LEFT:
        yield "Plan fewer or smaller steps, or allow more time"


def _reached(told: AttemptWork) -> bool:
    return told.attempt.outcome is Outcome.SUCCESS


def _ranked(log: LogSummary) -> list[LoggedFailure]:
    """What failed, checks before other commands, those before the slips of tools."""
    return sorted(log.failures, key=lambda failing: _RANKS.index(failing.of))


def _open(log: LogSummary) -> list[LoggedFailure]:
    """What was not solved; of two errors of one command the later one."""
    return [failing for failing in _ranked(log) if not (failing.solved or failing.replaced)]


def _how_often(failing: LoggedFailure) -> str:
    times = "once" if failing.runs == 1 else plural(failing.runs, "time")
    return times if failing.times == failing.runs else f"{times}, with different errors, among them"


def _took(actions: int, errors: int, what: str = "It") -> str:
    of_which = f"of which {errors:,} failed" if errors else "none of which failed"
    return f"{what} took {plural(actions, 'action')}, {of_which}"


def _message(failing: LoggedFailure) -> str:
    return one_line(failing.message, _MAX_MESSAGE).rstrip(".")


def _in_full(failing: LoggedFailure) -> str:
    return f'`{failing.what}` failed with "{_message(failing)}"'


def _quote(text: str) -> str:
    return f'"{one_line(text)}"'


def _sentence(text: str) -> str:
    whole = one_line(text)
    return whole if whole.endswith(_ENDS) else f"{whole}."


def _listed(texts: Sequence[str]) -> str:
    told = "; ".join(one_line(text) for text in texts[:_MOST_TOLD])
    rest = len(texts) - _MOST_TOLD
    return f"{told}; and {rest:,} more" if rest > 0 else told
