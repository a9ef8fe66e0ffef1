"""Results of the lessons that a session was given (docs/scoring.md#applied-by-an-agent).

An injection alone is not a use. An error pattern was applied if its error occurred and a later edit follows its fix.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.errors import BadInput, UnknownRecord
from core.episodes.diffs import build_diff
from core.episodes.folders import TaskFolder, find_attempt_folder
from core.episodes.log_summary import describe_failed, summarize_log
from core.extraction.attempt_fixes import find_failures
from core.extraction.trigger_check import clean_message
from core.records.events import Event, event_id
from core.records.loops import Outcome
from core.records.patterns import Pattern, PatternType
from core.retrieval.relevance import matches_failure
from core.sources.actions import Actions

if TYPE_CHECKING:
    from core.episodes.log_summary import LoggedFailure
    from core.project.project import Project
    from core.records.debug_sessions import Failure
    from core.records.episodes import Action, Attempt

_WORD: Final = re.compile(r"[A-Za-z_]\w{2,79}|\?\.|\?\?|<=|>=|&&|\|\||!==|===|\*\*|\.\.\.")  # names and some operators
_HOLE: Final = re.compile(r"\{\{[^{}]{0,80}\}\}")
_MAX_TEXT: Final = 20_000  # characters of a fix or an edit that are compared
_COMMON: Final = """\
add and are assert await break but case catch change class const continue def default else elif error except export
extends false file final finally fix for from func function import instead int into let must new nil none not null only
package pass private public raise return self should static str string struct super switch test tests that the then this
throw true try type undefined use var void when while with"""
_COMMON_WORDS: Final = frozenset(_COMMON.split())
"""Words that are in fixes of all kinds, so that sharing one of them shows nothing."""


def record_results(project: Project, task_id: str) -> None:
    """Record the results of the error patterns that the attempts at a task were given, each once."""
    if events := list(_find_results(project, task_id)):
        project.record(*events)


def _find_results(project: Project, task_id: str) -> Iterator[Event]:
    snapshot, now, root = project.view.snapshot, project.now(), str(project.project.project)
    attempts = {
        id: attempt
        for id, attempt in snapshot.attempts.items()
        if attempt.task_id == task_id and attempt.outcome in (Outcome.SUCCESS, Outcome.FAILURE)
    }
    about = [event for event in snapshot.events if event.loop_id in attempts]
    known = {(event.loop_id, event.pattern_id) for event in about if event.kind == "applied"}
    given: dict[str, dict[str, datetime]] = {}
    for event in about:
        if event.kind == "injected" and (event.loop_id, event.pattern_id) not in known:
            given.setdefault(event.loop_id, {}).setdefault(event.pattern_id, event.at)
    for work_id, patterns in sorted(given.items()):
        attempt = attempts[work_id]
        actions = read_actions(project, attempt)
        failures = summarize_log(actions).failures if actions else ()
        for pattern_id, at in sorted(patterns.items()):
            pattern = snapshot.patterns.get(pattern_id)
            if pattern is None or pattern.type is not PatternType.ERROR:
                continue
            success = find_result(pattern, at, actions, failures, attempt.outcome, root)
            if success is not None:
                yield Event(
                    id=event_id(now),
                    at=now,
                    kind="applied",
                    pattern_id=pattern_id,
                    loop_id=work_id,
                    success=success,
                    by=project.by,
                    agent=project.agent,
                )


def find_result(
    pattern: Pattern,
    given_at: datetime,
    actions: Sequence[Action],
    failures: Iterable[LoggedFailure],
    outcome: Outcome,
    root: str = "",
) -> bool | None:
    """Return whether an error pattern helped in an attempt; None if it was not applied, or if that is unknown.

    `actions` and `failures` are those of the attempt, which was given the pattern at `given_at`. `root` is the project
    folder.
    """
    failed = [action for action in actions if action.has_failed]
    hit = [one for one in failed if is_error_of(pattern, one, root)]
    keys = {describe_failed(action).key for action in hit}
    met = [failure for failure in failures if failure.key in keys]
    if not met:
        return None
    following = [
        action.number
        for action in actions
        if action.changed_file
        and action.number > hit[0].number
        and (action.at is None or action.at >= given_at)
        and follows_fix(pattern, action)
    ]
    if not following:
        return None
    last = max(failure.last for failure in met)
    if all(failure.solved for failure in met):
        return True if following[-1] > last else None
    return False if outcome is Outcome.FAILURE and following[0] < last else None


def is_error_of(pattern: Pattern, action: Action, root: str = "") -> bool:
    """Return whether a failed action has the error of a pattern."""
    return any(_is_its_error(pattern, error) for error in find_failures(action, root))


def _is_its_error(pattern: Pattern, failure: Failure) -> bool:
    """Return whether a failure is the error of a pattern; without a trigger, if it has the same message."""
    if not pattern.error_pattern:
        return bool(pattern.error_message) and pattern.error_message == clean_message(failure)
    return matches_failure(pattern, failure)


def follows_fix(pattern: Pattern, action: Action) -> bool:
    """Return whether an edit adds a line or a distinctive word of the pattern's fix.

    Of a fix without code, the words of its description are compared.
    """
    lines, words = _added("\n".join(build_diff(action)))
    fix_lines, fix_words = _added(pattern.diff_pattern)
    if pattern.template_code:
        template = _HOLE.sub(" ", pattern.template_code[:_MAX_TEXT])
        fix_lines, fix_words = fix_lines | _squeeze(template), fix_words | _words(template)
    if not fix_words and not fix_lines:
        fix_words = _words(pattern.description[:_MAX_TEXT])
    return not lines.isdisjoint(fix_lines) or not words.isdisjoint(fix_words)


def _added(diff: str) -> tuple[set[str], set[str]]:
    """Return the added lines of a diff without spaces, and the words that only they have."""
    text = diff[:_MAX_TEXT].splitlines()
    added = "\n".join(line[1:] for line in text if line.startswith("+") and not line.startswith("+++"))
    removed = "\n".join(line[1:] for line in text if line.startswith("-") and not line.startswith("---"))
    return _squeeze(added) - _squeeze(removed), _words(added) - _words(removed)


def _squeeze(text: str) -> set[str]:
    """Return the lines with at least one letter or digit, without spaces."""
    lines = ("".join(line.split()) for line in text.splitlines())
    return {line for line in lines if any(map(str.isalnum, line))}


def _words(text: str) -> set[str]:
    return {word for found in _WORD.findall(text) if (word := found.casefold()) not in _COMMON_WORDS}


def read_actions(project: Project, attempt: Attempt) -> Sequence[Action]:
    """Read the log of an attempt; empty if its folder is gone or unsafe."""
    try:
        folder = TaskFolder.of(project.project, attempt.task_id)
        place = find_attempt_folder(folder, attempt.number)
    except (BadInput, UnknownRecord):
        return ()
    return Actions(folder.project, folder.project.relative(place.actions))
