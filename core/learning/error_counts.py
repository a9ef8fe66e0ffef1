"""Number of errors of a loop or attempt over all records; docs/scoring.md#errors-of-a-loop."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

from core.records.debug_sessions import DebugSession, Failure
from core.records.loops import Iteration, Outcome

_MAX_KEY: Final = 300
"""Maximum number of characters of a message that are compared."""
_TYPE: Final = re.compile(r"(?:uncaught )?(?:\w{1,40}\.){0,6}\w{0,60}(?:error|exception)(?: ?\[\w{1,40}\])?: ")
_PLACE: Final = re.compile(r" (?:at |\()[\w.@~+/\\-]{1,200}:\d[\d:]{0,20}\)?$")


def count_errors(
    logged: Sequence[str], iterations: Sequence[Iteration], sessions: Sequence[DebugSession]
) -> int | None:
    """Count the errors that three sources record, each error once; None if no source has a result.

    Args:
        logged: Messages of the error log.
        iterations: Iterations of the loop; none for an attempt.
        sessions: Debug sessions.
    """
    known = any(iteration.outcome is not Outcome.UNKNOWN or iteration.failures for iteration in iterations)
    silent = sum(iteration.failed and not iteration.failures for iteration in iterations)
    if not logged and not sessions and not any(iteration.failures for iteration in iterations):
        return silent if known else None  # the common case: nothing to compare
    of_iterations = Counter(
        key
        for iteration in iterations
        for key, *_ in {(*_named(one), one.file, one.line) for one in iteration.failures}
    )
    runs = [run for session in sessions for run in session.executions]
    # A test that fails again with the same message in a later run is the same failure.
    of_sessions = Counter(key for key, *_ in {_named(failure) for run in runs for failure in run.failures})
    counts = [run.results.failing for run in runs if run.results is not None and run.results.failing is not None]
    if not (logged or known or of_sessions or counts):
        return None
    together = (Counter(map(_key, logged)) | of_iterations | of_sessions).total()
    return max(together, of_iterations.total() + (0 if logged else silent), *counts, 0)


def _named(failure: Failure) -> tuple[str, str, str]:
    """Return the comparable message of a failure, its type and its test."""
    return _key(failure.message or failure.error_type), failure.error_type, failure.test_name


def _key(message: str) -> str:
    """Return the first line of a message without error type and place, which is equal in all records of an error."""
    first = message.strip()[: 2 * _MAX_KEY].partition("\n")[0]
    text = " ".join(first.casefold().split())[:_MAX_KEY]
    return _PLACE.sub("", text[found.end() :] if (found := _TYPE.match(text)) else text) or text
