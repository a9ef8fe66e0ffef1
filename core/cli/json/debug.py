"""JSON of the debug memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import astuple

from core.cli.json import objects
from core.tasks.escalations import find_escalation

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession, Execution
    from core.records.snapshot import Snapshot
    from core.tasks.debug_index import FixCounts, FixResults, FixTemplate


def _row_values(session: DebugSession, snapshot: Snapshot) -> dict[str, object]:
    found = find_escalation(session, snapshot)
    return {
        "escalated": found is not None,
        "escalated_at": found.at if found is not None else None,
        "call": snapshot.escalations.get(session.id),
        "runs": len(session.executions),
        "failing": failing_tests(session),
        "error_types": list(dict.fromkeys(f.error_type for run in session.executions for f in run.failures)),
        "causes": causes_of(session),
    }


def failing_tests(session: DebugSession) -> int | None:
    """Count the tests that failed or stopped in the last run; None if unknown."""
    if not session.executions:
        return None
    last = session.executions[-1]
    counted = last.results.failing if last.results is not None else None
    return counted if counted is not None else len(last.failures) or None


def causes_of(session: DebugSession) -> list[str]:
    """List the root causes in the analyses of a session, without duplicates."""
    runs = (run.analysis.category for run in session.executions if run.analysis is not None)
    return list(dict.fromkeys(category for category in runs if category))


def session_rows(sessions: Sequence[DebugSession], snapshot: Snapshot) -> Iterator[objects.Wire]:
    for session in sessions:
        yield objects.SessionRow.of(session, **_row_values(session, snapshot))


def session_details(session: DebugSession, snapshot: Snapshot, results: FixResults, level: float) -> objects.Wire:
    return objects.SessionDetails.of(
        session,
        **_row_values(session, snapshot),
        executions=[_run(run, held) for run, held in zip(session.executions, session.verdicts, strict=True)],
        patterns_identified=[
            objects.LessonDetails.of(lesson, fixes=fix_rate(results.of_lesson(lesson), level))
            for lesson in session.lessons
        ],
    )


def _run(run: Execution, held: bool | None) -> objects.Wire:
    analysis, fix = run.analysis, run.fix
    similar = [astuple(one) for one in analysis.similar] if analysis is not None else []
    return objects.Run.of(
        run,
        analysis=objects.Analysis.of(analysis, similar=similar) if analysis is not None else None,
        fix=objects.Fix.of(fix, held=held) if fix is not None else None,
    )


def fix_rate(counts: FixCounts, level: float) -> objects.Wire:
    return objects.FixRate.of(counts, interval=counts.interval(level))


def fix_template(template: FixTemplate, level: float) -> objects.Wire:
    return objects.FixTemplate.of(template, fixes=fix_rate(template.fixes, level))
