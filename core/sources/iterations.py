"""Read one iteration of a loop (docs/file-formats.md#iterations)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from core.records.debug_sessions import Failure
from core.records.loops import Iteration, Outcome
from core.sources import normalize
from core.sources.debug_sessions import MAX_TEXT, read_failure, read_fix, read_results
from core.sources.fields import Fields

_TIME: Final = ("timestamp", "completed_at", "completedAt", "started_at", "startedAt")
_FILES: Final = ("filesModified", "files_modified", "files_changed", "artifactsModified")
_DURATION: Final = ("duration_ms", "execution_time_ms", "duration")
_FAILURES: Final = ("error", "errors", "failures")
_FINISHED: Final = frozenset({"completed", "complete", "done"})
_MAX_FAILURES: Final = 100
"""Maximum errors that are read from one field."""


def read_iteration(fields: Fields) -> Iteration:
    """Read an iteration in any of its spellings.

    "completed" together with an error means that the iteration ended, not that it succeeded.
    """
    failures = tuple(_failures(fields))
    word = fields.text("outcome", "status", "verification_status")
    is_just_finished = bool(failures) and normalize.word(word) in _FINISHED
    outcome = Outcome.UNKNOWN if is_just_finished else normalize.outcome(word)
    if outcome is Outcome.UNKNOWN and (passed := fields.flag("verified", "passed")) is not None:
        outcome = Outcome.SUCCESS if passed else Outcome.FAILURE
    results = read_results(fields)
    if outcome is Outcome.UNKNOWN and results is not None and results.green is not None:
        outcome = Outcome.SUCCESS if results.green else Outcome.FAILURE
    return Iteration(
        number=fields.count(*normalize.ITERATION_NUMBER),
        at=fields.time(*_TIME),
        action=fields.text("action"),
        result=fields.text("result", "output", "notes", "progress"),
        outcome=outcome,
        learnings=fields.lines("learnings", "reflections"),
        duration_ms=fields.number(*_DURATION),
        quality=read_quality(fields),
        files=fields.texts(*_FILES),
        failures=failures,
        fix=read_fix(fields),
        results=results,
        tools=fields.texts("tools_used", "toolsUsed", "tools"),
    )


def read_quality(fields: Fields) -> float | None:
    """Quality as 0..1: `quality_score` is 0..100, other names are rates."""
    score = fields.number("quality_score")
    if score is None:
        return fields.rate("quality", "final_quality")
    return score / 100 if 0 <= score <= 100 else None


def _failures(fields: Fields) -> Iterator[Failure]:
    """Errors in a list or alone, as objects or texts."""
    for name in _FAILURES:
        value = fields.mapping.get(name)
        for item in (value if isinstance(value, list) else [value])[:_MAX_FAILURES]:
            if isinstance(item, str) and item.strip():
                yield Failure(message=item[:MAX_TEXT])
            elif isinstance(item, dict):
                inner = Fields(fields.file, item, fields.findings, fields.place(name))
                if failure := read_failure(inner):
                    yield failure
