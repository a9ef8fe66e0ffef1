"""Repairs: errors and what fixed them; docs/extraction.md#error-patterns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import datetime

from msgspec import Struct

from core.base.record_text import strip_label
from core.extraction.errors import Sighting, count_failing, find_errors, parse_error
from core.records.debug_sessions import DebugSession, Execution, Failure, Fix
from core.records.events import Event
from core.records.extractions import Material
from core.records.loops import Iteration, Outcome


class Repair(Struct, frozen=True, kw_only=True):
    """One error, and the change after which it was gone and the tests passed."""

    error: Sighting
    description: str  # the change in the words of the loop
    diff: str = ""
    files: tuple[str, ...] = ()
    cause: str = ""  # root cause category of a debug session, or ""
    trace: str  # the records of both, for people
    at: datetime | None = None  # when it was fixed
    agent: str = ""  # who fixed it, or ""


def find_repairs(material: Material) -> tuple[Repair, ...]:
    """Return all repairs, those with code first."""
    found = [
        *(repair for session in material.sessions for repair in _of_session(session)),
        *_of_iterations(material.iterations),
        *_of_log(material.errors, material.resolved, material.iterations),
    ]
    return tuple(sorted(found, key=lambda repair: not repair.diff))


def has_passed(iteration: Iteration) -> bool:
    """Return whether the tests pass at the end of an iteration."""
    green = iteration.results.green if iteration.results is not None else None
    return iteration.outcome is Outcome.SUCCESS if green is None else green


def describe_action(iteration: Iteration) -> str:
    """Return what an iteration did in its own words, or ""."""
    return strip_label(iteration.fix.description if iteration.fix and iteration.fix.description else iteration.action)


def _of_iterations(iterations: Sequence[Iteration]) -> Iterator[Repair]:
    """Yield errors of an iteration that the next one fixed for good."""
    errors_of = [tuple(find_errors(iteration)) for iteration in iterations]
    last_pass = max((index for index, iteration in enumerate(iterations) if has_passed(iteration)), default=-1)
    last = {error.signature: index for index, errors in enumerate(errors_of) for error in errors}
    for index, errors in enumerate(errors_of):
        after = next((later for later in _fixing(iterations, index) if later <= last_pass), None)
        if after is None:
            continue
        for error in errors:
            if last[error.signature] == index:
                yield _repair(error, iterations[after])


def _fixing(iterations: Sequence[Iteration], index: int) -> Iterator[int]:
    """Yield the index of the iteration that fixed the errors of `index`."""
    here = iterations[index]
    if here.fix is not None and here.fix.verified is not False and has_passed(here):
        yield index
    if index + 1 == len(iterations):
        return
    following = iterations[index + 1]
    before, after = count_failing(here), count_failing(following)
    better = before is not None and after is not None and after < before
    verified = following.fix.verified if following.fix is not None else None
    if describe_action(following) and verified is not False and (has_passed(following) or verified or better):
        yield index + 1


def _repair(error: Sighting, iteration: Iteration) -> Repair:
    fix = iteration.fix or Fix()
    same = error.iteration == iteration.number
    return Repair(
        error=error,
        description=describe_action(iteration),
        diff=fix.diff,
        files=fix.files or iteration.files,
        trace=error.where if same else f"{error.where} → {iteration.number}",
        at=iteration.at or error.at,
    )


def _of_session(session: DebugSession) -> Iterator[Repair]:
    """Yield failures whose fix was verified or that the next run did not show."""
    runs = session.executions
    followings = (*runs[1:], None)  # longer than the runs where there are none
    for execution, following, held in zip(runs, followings, session.verdicts, strict=False):
        fix = execution.fix
        if fix is None or not held:
            continue
        analysis = execution.analysis
        where = f"debug session {session.id}, attempt {execution.attempt}"
        for failure in execution.failures:
            error = parse_error(failure, where, session.iteration, execution.at)
            if error is not None and not (following and fails_with(following, error.signature)):
                yield Repair(
                    error=error,
                    description=strip_label(fix.description) or strip_label(analysis.strategy if analysis else ""),
                    diff=fix.diff,
                    files=fix.files or ((session.file_path,) if session.file_path else ()),
                    cause=analysis.category if analysis else "",
                    trace=where,
                    at=following.at if following and following.at else execution.at,
                    agent=session.agent,
                )


def fails_with(execution: Execution, signature: str) -> bool:
    errors = (parse_error(failure, "", None, None) for failure in execution.failures)
    return any(error is not None and error.signature == signature for error in errors)


def _of_log(errors: Sequence[Event], resolved: Sequence[Event], iterations: Sequence[Iteration]) -> Iterator[Repair]:
    """Yield logged errors that were resolved; the iteration's action is the fix."""
    fixed_at = {event.resolves: event.at for event in resolved}
    timed = [iteration for iteration in iterations if iteration.at is not None]
    ends = [iteration.at for iteration in timed if iteration.at is not None]
    if ends != sorted(ends):
        return
    for event in errors:
        at = fixed_at.get(event.id)
        place = bisect_left(ends, at) if at is not None else len(timed)
        if event.error is None or place == len(timed) or not describe_action(timed[place]):
            continue
        iteration = timed[place]
        where = f"error log {event.id}, resolved"
        error = parse_error(Failure(message=event.error.message), where, iteration.number, event.at)
        if error is not None:
            yield Repair(
                error=error,
                description=describe_action(iteration),
                diff=iteration.fix.diff if iteration.fix else "",
                files=iteration.files,
                trace=f"{where}; iteration {iteration.number}",
                at=at,
                agent=event.agent,
            )
