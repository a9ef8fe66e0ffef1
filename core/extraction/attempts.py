"""Errors, fixes and tools in the action log of an attempt at a task."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from core.base.grouping import group_pairs
from core.base.record_text import one_line, strip_label
from core.base.text import safe_matcher
from core.episodes.commands import parse_command
from core.episodes.diffs import build_diff
from core.extraction.errors import Sighting, extract_message, parse_error
from core.extraction.fixes import Repair
from core.records.debug_sessions import Failure
from core.records.episodes import Action, Attempt
from core.records.extractions import LoggedAttempt

MAX_LATER_RUNS: Final = 50  # maximum number of later runs of a command that are checked for an error
MAX_EDITS: Final = 20  # maximum number of changes, the last ones, that describe a fix
_MAX_TEXT: Final = 20_000  # maximum number of characters of an output that are searched for its error
_MAX_LINES: Final = 500
_MAX_REASONS: Final = 3
_MARK: Final = re.compile(r"^(?:E\s{2,}|[>×✕✗●•*-]\s+)")  # prefixes of error lines in the output of test runners
_ONLY_A_CODE: Final = re.compile(
    r"(?:process |command )?(?:exit(?:ed|s)?|failed)(?: with)?(?: \w+)? ?(?:code|status)?:? ?-?\d*\.?", re.IGNORECASE
)
"""An error that contains only an exit code."""
_MAX_CODE: Final = 100


def find_attempt_repairs(logged: LoggedAttempt) -> Iterator[Repair]:
    """Yield the errors of commands that file changes fixed.

    The command must pass in the end, and the error must not occur again in the attempt. The changes are those before
    the next run of the command.
    """
    actions = logged.actions
    commands = [parse_command(action) for action in actions]
    errors = {place: _sighting(logged.attempt, action) for place, action in enumerate(actions) if action.has_failed}
    last = {error.signature: (place, error.message) for place, error in errors.items() if error is not None}
    runs_of = group_pairs(
        (commands[place].check or commands[place].whole, place)
        for place, action in enumerate(actions)
        if action.success is not None or action.has_failed
    )
    for places in runs_of.values():
        for rank, place in enumerate(places):
            error = errors.get(place)
            if error is None or last[error.signature][0] > place:
                continue
            later = (after for after in places[rank + 1 :] if commands[after].covers(commands[place]))
            runs = tuple(islice(later, MAX_LATER_RUNS))
            passed = next((after for after in runs if not actions[after].has_failed), None)
            if passed is None or any(errors.get(after) is None for after in runs if after < passed):
                continue  # what failed without a message may have been the same error
            changes = [action for action in actions[place + 1 : runs[0]] if action.changed_file][-MAX_EDITS:]
            if changes and not _recurs(error, place, last.values()):
                yield _repair(logged.attempt, error, changes, actions[place], actions[passed])


def find_repeated_errors(logged: LoggedAttempt, least: int) -> Iterator[tuple[Sequence[Sighting], Sequence[str]]]:
    """Yield each error with at least `least` occurrences, and the changes in between."""
    met = group_pairs(
        (error.signature, (place, error))
        for place, action in enumerate(logged.actions)
        if action.has_failed and (error := _sighting(logged.attempt, action)) is not None
    )
    for times in met.values():
        if len(times) >= least:
            between = logged.actions[times[0][0] + 1 : times[-1][0]]
            yield [error for _, error in times], describe_changes(action for action in between if action.changed_file)


def list_tools(actions: Iterable[Action]) -> tuple[str, ...]:
    """Return the tools of successful actions, each once: `Edit`, `Bash (npm test)`."""
    used: dict[str, None] = {}
    for action in actions:
        name = one_line(action.tool or action.type, 80)
        if name and not action.has_failed:
            check = " ".join(parse_command(action).check)
            used.setdefault(f"{name} ({one_line(check, 80)})" if check else name)
    return tuple(used)


def list_files(actions: Iterable[Action]) -> tuple[str, ...]:
    changed = (one_line(action.target) for action in actions if action.changed_file)
    return tuple(dict.fromkeys(filter(None, changed)))


def describe_changes(changes: Iterable[Action]) -> list[str]:
    """Describe changes by their recorded reasons, each once; else by their files."""
    changes = tuple(changes)
    reasons = dict.fromkeys(filter(None, (strip_label(action.reasoning) for action in changes)))
    return list(reasons)[-_MAX_REASONS:] or [f"Change {file}" for file in list_files(changes)[-_MAX_REASONS:]]


def describe_attempt(attempt: Attempt) -> str:
    """Return `task-001, attempt 2`."""
    return f"{attempt.task_id}, attempt {attempt.number}"


def _repair(attempt: Attempt, error: Sighting, changes: Sequence[Action], failed: Action, passed: Action) -> Repair:
    return Repair(
        error=error,
        description=one_line("; ".join(describe_changes(changes))),
        diff="\n".join(part for change in changes for part in build_diff(change))[:_MAX_TEXT],
        files=list_files(changes),
        trace=f"{describe_attempt(attempt)}, actions {failed.number} → {passed.number}",
        at=passed.at or failed.at or attempt.ended_at,
        agent=attempt.agent,
    )


def _recurs(error: Sighting, place: int, last: Iterable[tuple[int, str]]) -> bool:
    """Return whether one of the last errors contains this one."""
    again = safe_matcher(error.signature)
    newest = sorted((other for other in last if other[0] > place), reverse=True)[:MAX_LATER_RUNS]
    return any(again.matches(message) for _, message in newest)


def _sighting(attempt: Attempt, action: Action) -> Sighting | None:
    where = f"{describe_attempt(attempt)}, action {action.number}"
    return parse_error(Failure(message=_message(action)), where, action.iteration, action.at)


def _message(action: Action) -> str:
    """Return the line that names the error of an action, else its first error line."""
    lines = [_MARK.sub("", part.strip()) for text in (action.error, action.output) for part in _lines_of(text)]
    named = next((found for part in lines if (found := extract_message(part))), "")
    if named:
        return named
    own = [part for part in map(str.strip, _lines_of(action.error)) if part]
    return next((part for part in own if not _ONLY_A_CODE.fullmatch(part[:_MAX_CODE])), "")


def _lines_of(text: str) -> list[str]:
    return text[:_MAX_TEXT].splitlines()[:_MAX_LINES]
