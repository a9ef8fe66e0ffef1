"""Add and draft reflections (docs/task-memory.md#reflections)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from core.base.errors import BadInput
from core.base.text import one_line, plural
from core.base.validation import check_choice, check_text
from core.files.append_log import AppendLog
from core.files.file_reader import MAX_BYTES
from core.learning.outcomes import format_duration_ms
from core.records.loops import Outcome
from core.records.reflections import REFLECTION_TYPES, TRIGGERS, Reflection
from core.records.times import iso
from core.tasks.history import strict_reader
from core.tasks.log_summary import CHECK, COMMAND, TOOL, LoggedFailure, LogSummary
from core.tasks.task_files import TaskFolder, find_attempt_folder

if TYPE_CHECKING:
    from core.records.episodes import Attempt

TYPE_OF: Final = {
    "attempt_failure": "error-analysis",
    "attempt_success": "success-pattern",
    "attempt_timeout": "process-improvement",
    "task_completion": "process-improvement",
}  # type of a reflection by trigger
TASK_COMPLETION: Final = "task_completion"
LEFT_UNFINISHED: Final = "left unfinished"  # reason of an abandoned attempt
_MAX_FILE_BYTES: Final = MAX_BYTES // 4 * 3  # maximum size of `reflections.jsonl`; the rest is reserved for drafts
_MAX_LISTED: Final = 5  # maximum number of files, failures or action items in one list of a draft
_MAX_MESSAGE: Final = 160  # maximum length of an error message in a draft
_ENDS: Final = tuple(".!?…。！？")  # characters that end a sentence
_RANKS: Final = (CHECK, COMMAND, TOOL)  # kinds of failures, most important first


def attempt_trigger(outcome: Outcome) -> str:
    """Return the trigger of a reflection on an attempt with this outcome."""
    return f"attempt_{outcome.value}"


def add_reflection(
    folder: TaskFolder,
    attempt: int | None,
    parts: Mapping[str, Any],
    trigger: str,
    reflection_type: str | None,
    now: datetime,
) -> Reflection:
    """Append a reflection, unless it repeats the last one on the attempt; return it.

    Empty `parts` (`observation`, `analysis`, `learning`, `action_items`) are taken from the draft. `attempt` is by
    default the newest; the default of `reflection_type` depends on its outcome. Raises BadInput if the trigger or type
    is unknown or the file would become too long.
    """
    check_choice(trigger, "trigger", TRIGGERS)
    if reflection_type is not None:
        check_text(reflection_type, "reflection_type")
        reflection_type = reflection_type.replace("_", "-")
        check_choice(reflection_type, "reflection_type", REFLECTION_TYPES)
    given = {name: part for name, part in parts.items() if part}
    number = find_attempt_folder(folder, attempt).number
    reader = strict_reader(folder)
    outcome = reader.attempt(number).outcome
    reflection_type = reflection_type or TYPE_OF.get(attempt_trigger(outcome), REFLECTION_TYPES[-1])
    drafts = [one for one in reader.newest_reflections() if one.draft and one.attempt == number]
    all_parts = dict(parts)
    for draft in drafts[:1]:
        learning = draft.learning if draft.has_learning else ""
        all_parts |= {"observation": draft.observation, "analysis": draft.analysis, "learning": learning}
        all_parts["action_items"] = list(draft.actions)
    all_parts |= given
    records = (line.value for line in reader.reflection_lines())
    earlier = [one for one in records if isinstance(one, dict) and one.get("attempt_id") == number]
    kind = {"triggered_by": trigger, "reflection_type": reflection_type}
    repeated = {**given, **kind}
    if not earlier or drafts or {**earlier[-1], **repeated} != earlier[-1]:
        line = msgspec.json.encode({"timestamp": iso(now), "attempt_id": number, **all_parts, **kind})
        size = len(line) + (folder.reflections.stat().st_size if folder.reflections.exists() else 0)
        if size > _MAX_FILE_BYTES:
            limit = f"{size:,} bytes; at most {_MAX_FILE_BYTES:,} are allowed"
            raise BadInput(f"with this reflection, the reflections on {folder.id} have {limit}; shorten it")
        AppendLog(folder.reflections).append([line])
    return [one for one in reader.newest_reflections() if one.attempt == number][-1]


class AttemptWork(NamedTuple):
    attempt: Attempt
    log: LogSummary


def draft_reflection(work: AttemptWork, at: datetime, earlier: AttemptWork | None = None) -> dict[str, Any] | None:
    """Draft the reflection on an attempt that ended `at`, compared with `earlier`.

    None if the attempt left nothing to reflect on: neither words of its agent nor a check that still fails. The reason
    of a success is not enough: a fix is recorded as an error pattern, with this reason.
    """
    attempt = work.attempt
    trigger = attempt_trigger(attempt.outcome)
    learning = list(_lessons(attempt, work.log, earlier))
    if attempt.suggestions and not learning:  # suggestions are action items as well
        learning.append(f"Next time: {_join(attempt.suggestions)}.")
    if not learning and (attempt.outcome is Outcome.SUCCESS or attempt.reason in ("", LEFT_UNFINISHED)):
        return None
    return {
        "timestamp": iso(at),
        "attempt_id": attempt.number,
        "observation": " ".join(_observation(work)),
        "analysis": " ".join(_analysis(work, earlier)),
        "learning": " ".join(learning),
        "action_items": list(dict.fromkeys(_action_items(work, earlier)))[:_MAX_LISTED],
        "triggered_by": attempt.outcome.value,
        "reflection_type": TYPE_OF[trigger],
        "trigger": trigger,
        "draft": True,
    }


def draft_completion(
    attempts: Sequence[Attempt],
    at: datetime,
    log: LogSummary | None = None,
    failed: AttemptWork | None = None,
    *,
    given_up: bool = False,
) -> dict[str, Any] | None:
    """Draft the reflection on a task that ended `at`; `given_up` means it failed.

    The last of `attempts` ended the task, and `log` is its log. `failed` is the last attempt that did not succeed.
    None if the attempts differ in nothing that explains how the task ended.
    """
    last = AttemptWork(attempts[-1], log or LogSummary())
    how = "given up after" if given_up else "completed by"
    analysis = ""
    if failed is not None:
        reason = _sentence(failed.attempt.reason or failed.attempt.outcome.value)
        analysis = f"Attempt {failed.attempt.number} did not reach the goal: {reason}"
    learning = []
    if given_up:
        if plans := list(dict.fromkeys(_quote(one.plan) for one in attempts if one.plan)):
            learning.append(f"Did not reach the goal: {_join(plans)}.")
            learning += [f"The last obstacle: {_describe_failure(failing)}." for failing in _unsolved(last.log)[:1]]
    elif failed:
        learning += _success_factors(last, failed)
    if not learning:
        return None
    items = list(dict.fromkeys(one_line(item) for one in attempts for item in one.suggestions))
    return {
        "timestamp": iso(at),
        "attempt_id": last.attempt.number,
        "observation": f"The task was {how} attempt {last.attempt.number}.",
        "analysis": analysis,
        "learning": " ".join(learning),
        "action_items": items[-_MAX_LISTED:],
        "triggered_by": last.attempt.outcome.value if given_up else Outcome.SUCCESS.value,
        "reflection_type": TYPE_OF[TASK_COMPLETION],
        "trigger": TASK_COMPLETION,
        "draft": True,
    }


def _observation(work: AttemptWork) -> Iterator[str]:
    attempt, log = work
    reason = f": {_sentence(attempt.reason)}" if attempt.reason else "."
    yield f"Attempt {attempt.number} ended in {attempt.outcome.value}{reason}"
    if attempt.outcome is Outcome.TIMEOUT and attempt.started_at is not None and attempt.ended_at is not None:
        seconds = (attempt.ended_at - attempt.started_at).total_seconds()
        if seconds > 0:
            yield f"It took {format_duration_ms(seconds * 1000)}."
    failures = _rank_failures(log)
    for failing in failures[:1]:
        times = "once" if failing.runs == 1 else plural(failing.runs, "time")
        how_often = times if failing.times == failing.runs else f"{times}, with different errors, among them"
        yield f"`{failing.what}` failed {how_often}: {_message(failing)}."
    others = list(dict.fromkeys(f"`{one.what}`" for one in failures if one.what != failures[0].what))
    if others:
        yield f"Also failed: {_join(others)}."
    if log.files:
        yield f"Changed: {_join(log.files)}."
    values = [one.quality for one in attempt.quality]
    if len(values) > 1:
        best = max(values)
        peak = f", at best {best:.2f}" if best > max(values[0], values[-1]) else ""
        yield f"Quality went from {values[0]:.2f} to {values[-1]:.2f}{peak}."
    elif attempt.final_quality is not None:
        yield f"Its quality was {attempt.final_quality:.2f}."


def _analysis(work: AttemptWork, earlier: AttemptWork | None) -> Iterator[str]:
    attempt, log = work
    for number, failing in enumerate(_rank_failures(log)[:_MAX_LISTED]):
        # The observation contains the message of the first failure, unless it occurred with different errors.
        is_known = number == 0 and failing.runs == failing.times
        name = f"`{failing.what}`" if is_known else f"`{failing.what}` ({_message(failing)})"
        if course := _later_result(failing):
            yield f"{name} {course}."
    if earlier is not None:
        other = earlier.attempt
        if attempt.plan and attempt.plan == other.plan:
            yield f"The plan was that of attempt {other.number}."
        elif attempt.plan and other.plan:
            yield f"Attempt {other.number} planned {_quote(other.plan)}, this one {_quote(attempt.plan)}."
        if earlier.log.files:
            yield from _new_files(log, earlier)


def _new_files(log: LogSummary, earlier: AttemptWork) -> Iterator[str]:
    if new := [file for file in log.files if file not in earlier.log.files]:
        yield f"Unlike attempt {earlier.attempt.number} it changed {_join(new)}."


def _later_result(failing: LoggedFailure) -> str:
    """Return a predicate about the later runs of a failed command; "" for a tool."""
    if failing.solved:
        if what := _solution(failing):
            return f"no longer failed after {what}"
        return "succeeded later, with no change logged in between"
    if failing.replaced:
        return "did not fail with this error again, but with another one"
    if failing.of == TOOL:
        return ""
    tried = f" after changes to {_join(failing.tried)}" if failing.tried else ""
    again = f"failed again{tried}" if failing.times > 1 else ""
    last = f"was not run again after changes to {_join(failing.changed)}" if failing.changed else ""
    return ", and ".join(filter(None, (again, last))) or "was not run again"


def _solution(failing: LoggedFailure) -> str:
    if failing.changed:
        return f"changes to {_join(failing.changed)}"
    return _join([f"`{command}`" for command in failing.ran])


def _success_factors(work: AttemptWork, failed: AttemptWork) -> Iterator[str]:
    attempt, log = work
    if attempt.plan and attempt.plan != failed.attempt.plan:
        instead = f"; {_quote(failed.attempt.plan)} did not" if failed.attempt.plan else ""
        yield f"{_quote(attempt.plan)} reached the goal{instead}."
    yield from _new_files(log, failed)
    if attempt.worked:
        yield f"Worked: {_join(attempt.worked)}."


def _lessons(attempt: Attempt, log: LogSummary, earlier: AttemptWork | None) -> Iterator[str]:
    if attempt.outcome is Outcome.SUCCESS and attempt.plan:
        yield f"This approach succeeded: {_sentence(attempt.plan)}"
    if attempt.worked:
        yield f"Worked: {_join(attempt.worked)}."
    if attempt.failed:
        yield f"Avoid: {_join(attempt.failed)}."
    if attempt.outcome is not Outcome.SUCCESS:
        known_failures = {(one.what, one.message) for one in earlier.log.failures} if earlier else set()
        for failing in _unsolved(log)[:1]:
            known = "Not known to be solved" if failing.changed else "Not solved"
            is_known = (failing.what, failing.message) in known_failures
            before = f", as in attempt {earlier.attempt.number}" if earlier and is_known else ""
            tried = f", also after changes to {_join(failing.tried)}" if failing.tried else ""
            yield f"{known}: {_describe_failure(failing)}{before}{tried}."


def _action_items(work: AttemptWork, earlier: AttemptWork | None) -> Iterator[str]:
    attempt, log = work
    yield from (one_line(suggestion) for suggestion in attempt.suggestions)
    succeeded = attempt.outcome is Outcome.SUCCESS
    failing = [one for one in _unsolved(log) if one.of == CHECK or not (succeeded or one.of == TOOL)]
    again = list(dict.fromkeys(f"`{one.what}`" for one in failing if one.changed))
    if again:
        yield f"Run again what failed and was not run after the last changes: {_join(again)}"
    unclear = [name for name in dict.fromkeys(f"`{one.what}`" for one in failing) if name not in again]
    if unclear:
        when = " before changing more" if any(one.tried for one in failing) else ""
        yield f"Find out what makes {unclear[0]} fail{when}" + (f"; then {_join(unclear[1:])}" if unclear[1:] else "")
    if succeeded:
        return
    before = earlier.attempt if earlier is not None else None
    if before and attempt.plan and attempt.plan == before.plan and before.outcome is not Outcome.SUCCESS:
        yield f"Plan something else than {_quote(attempt.plan)}, which missed the goal twice"
    if attempt.outcome is Outcome.TIMEOUT and attempt.reason != LEFT_UNFINISHED:
        yield "Plan fewer or smaller steps, or allow more time"


def _rank_failures(log: LogSummary) -> list[LoggedFailure]:
    """Return the failures: checks first, then other commands, then tools."""
    return sorted(log.failures, key=lambda failing: _RANKS.index(failing.of))


def _unsolved(log: LogSummary) -> list[LoggedFailure]:
    """Return the unsolved failures; of several errors of a command, the last one."""
    return [failing for failing in _rank_failures(log) if not (failing.solved or failing.replaced)]


def _message(failing: LoggedFailure) -> str:
    return one_line(failing.message, _MAX_MESSAGE).rstrip(".")


def _describe_failure(failing: LoggedFailure) -> str:
    return f'`{failing.what}` failed with "{_message(failing)}"'


def _quote(text: str) -> str:
    return f'"{one_line(text)}"'


def _sentence(text: str) -> str:
    whole = one_line(text)
    return whole if whole.endswith(_ENDS) else f"{whole}."


def _join(texts: Sequence[str]) -> str:
    work = "; ".join(one_line(text) for text in texts[:_MAX_LISTED])
    rest = len(texts) - _MAX_LISTED
    return f"{work}; and {rest:,} more" if rest > 0 else work
