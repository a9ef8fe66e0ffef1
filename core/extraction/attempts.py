"""What the log of an attempt teaches (1): errors and what settled them, errors that stayed, tools that were used."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from core.base.record_text import one_line, strip_label
from core.base.text import safe_matcher
from core.episodes.commands import parse_command
from core.episodes.diffs import build_diff
from core.extraction.errors import Sighting, message_in, sighting
from core.extraction.fixes import Repair
from core.records.debug_sessions import Failure
from core.records.episodes import Action, Attempt
from core.records.material import LoggedAttempt

MAX_LOOKED: Final = 50
"""So many later runs of a command are looked at for what became of an error; a later one is about something else."""
MAX_EDITS: Final = 20
"""Most changes between an error and the run without it that are told as its fix, the last ones."""
_MAX_TEXT: Final = 20_000
"""Characters of an output in which its error is looked for."""
_MAX_LINES: Final = 500
_MAX_TOLD: Final = 3
_MARK: Final = re.compile(r"^(?:E\s{2,}|[>×✕✗●•*-]\s+)")
"""What test runners put before the line that names an error."""
_ONLY_A_CODE: Final = re.compile(
    r"(?:process |command )?(?:exit(?:ed|s)?|failed)(?: with)?(?: \w+)? ?(?:code|status)?:? ?-?\d*\.?", re.IGNORECASE
)
"""An error that says no more than that there was one."""
_MAX_CODE: Final = 100


def attempt_repairs(logged: LoggedAttempt) -> Iterator[Repair]:
    """(0) 2_identify_error_fix_pairs: a failed action, changes after it, and the same command without this error.

    The command must pass in the end, and the error must not come again in the attempt. Changes are the edits and
    writes up to the first run without the error.
    """
    actions = logged.actions
    commands = [parse_command(action) for action in actions]
    errors = {place: _sighting(logged.attempt, action) for place, action in enumerate(actions) if action.has_failed}
    last = {error.signature: (place, error.message) for place, error in errors.items() if error is not None}
    alike: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for place, action in enumerate(actions):
        if action.success is not None or action.has_failed:
            alike[commands[place].check or commands[place].whole].append(place)
    for places in alike.values():
        for rank, place in enumerate(places):
            error = errors.get(place)
            if error is None or last[error.signature][0] > place:
                continue
            later = (after for after in places[rank + 1 :] if commands[after].covers(commands[place]))
            runs = tuple(islice(later, MAX_LOOKED))
            passed = next((after for after in runs if not actions[after].has_failed), None)
            if passed is None or any(errors.get(after) is None for after in runs if after < passed):
                continue  # what failed without a message may have been the same error
            changes = [action for action in actions[place + 1 : runs[0]] if action.changed_file][-MAX_EDITS:]
            if changes and not _comes_again(error, place, last.values()):
                yield _repair(logged.attempt, error, changes, actions[place], actions[passed])


def repeated_errors(logged: LoggedAttempt, least: int) -> Iterator[tuple[Sequence[Sighting], Sequence[str]]]:
    """(0) 4_identify_failure_patterns: the same error at least so many times within one attempt, and what was done
    between the first and the last time."""
    met: dict[str, list[tuple[int, Sighting]]] = defaultdict(list)
    for place, action in enumerate(logged.actions):
        if action.has_failed and (error := _sighting(logged.attempt, action)) is not None:
            met[error.signature].append((place, error))
    for times in met.values():
        if len(times) >= least:
            between = logged.actions[times[0][0] + 1 : times[-1][0]]
            yield [error for _, error in times], doing(action for action in between if action.changed_file)


def tools_of(actions: Iterable[Action]) -> tuple[str, ...]:
    """The tools that were used with success, each once: `Edit`, `Bash (npm test)`."""
    used: dict[str, None] = {}
    for action in actions:
        name = one_line(action.tool or action.type, 80)
        if name and not action.has_failed:
            check = " ".join(parse_command(action).check)
            used.setdefault(f"{name} ({one_line(check, 80)})" if check else name)
    return tuple(used)


def files_of(actions: Iterable[Action]) -> tuple[str, ...]:
    """The files that were changed, each once."""
    changed = (one_line(action.target) for action in actions if action.changed_file)
    return tuple(dict.fromkeys(filter(None, changed)))


def doing(changes: Iterable[Action]) -> list[str]:
    """What changes were for, in the words of who made them, each once; else the files that they changed."""
    changes = tuple(changes)
    reasons = dict.fromkeys(filter(None, (strip_label(action.reasoning) for action in changes)))
    return list(reasons)[-_MAX_TOLD:] or [f"Change {file}" for file in files_of(changes)[-_MAX_TOLD:]]


def place_of(attempt: Attempt) -> str:
    """An attempt as a trace names it: `task-001, attempt 2`."""
    return f"{attempt.task_id}, attempt {attempt.number}"


def _repair(attempt: Attempt, error: Sighting, changes: Sequence[Action], failed: Action, passed: Action) -> Repair:
    return Repair(
        error=error,
        description=one_line("; ".join(doing(changes))),
        diff="\n".join(part for change in changes for part in build_diff(change))[:_MAX_TEXT],
        files=files_of(changes),
        trace=f"{place_of(attempt)}, actions {failed.number} → {passed.number}",
        at=passed.at or failed.at or attempt.ended_at,
        agent=attempt.agent,
    )


def _comes_again(error: Sighting, place: int, last: Iterable[tuple[int, str]]) -> bool:
    """Whether one of the errors met last is this one in a few more words."""
    again = safe_matcher(error.signature)
    newest = sorted((other for other in last if other[0] > place), reverse=True)[:MAX_LOOKED]
    return any(again.matches(message) for _, message in newest)


def _sighting(attempt: Attempt, action: Action) -> Sighting | None:
    where = f"{place_of(attempt)}, action {action.number}"
    return sighting(Failure(message=_message(action)), where, action.iteration, action.at)


def _message(action: Action) -> str:
    """The error that an action tells: the line that names one, in its error or its output; else its error."""
    lines = [_MARK.sub("", part.strip()) for text in (action.error, action.output) for part in _lines_of(text)]
    named = next((found for part in lines if (found := message_in(part))), "")
    if named:
        return named
    own = [part for part in map(str.strip, _lines_of(action.error)) if part]
    return next((part for part in own if not _ONLY_A_CODE.fullmatch(part[:_MAX_CODE])), "")


def _lines_of(text: str) -> list[str]:
    return text[:_MAX_TEXT].splitlines()[:_MAX_LINES]
