"""JSON of the debug memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.cli.json import objects
from core.cli.json.wire import Wire
from core.debug_memory.escalation_status import find_escalation

if TYPE_CHECKING:
    from core.debug_memory.archive import ArchivedSession as ArchivedRecord
    from core.debug_memory.archive import FileMove as MoveRecord
    from core.debug_memory.effectiveness import FixCounts, FixResults
    from core.debug_memory.known_fixes import KnownFix as KnownFixRecord
    from core.debug_memory.reports import CauseReport, RecurringFailure
    from core.debug_memory.reports import FixTemplate as TemplateRecord
    from core.debug_memory.retention import RetentionPlan
    from core.learning.assessment import Assessment
    from core.records.debug_sessions import DebugSession, Execution
    from core.records.debug_sessions import Failure as FailureRecord
    from core.records.debug_sessions import Lesson as LessonRecord
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


def session_row(session: DebugSession, snapshot: Snapshot) -> Wire:
    """One debug session."""
    return objects.SessionRow.of(session, **_row_values(session, snapshot))


def _row_values(session: DebugSession, snapshot: Snapshot) -> dict[str, object]:
    found, call = find_escalation(session, snapshot), snapshot.escalations.get(session.id)
    return {
        "escalated": found is not None,
        "escalated_at": found.at if found is not None else None,
        "call": None if call is None else objects.EscalationCall.of(call, context=call.file),
        "runs": len(session.executions),
        "failing": failing_tests(session),
        "error_types": list(dict.fromkeys(f.error_type for run in session.executions for f in run.failures)),
        "causes": causes_of(session),
    }


def failing_tests(session: DebugSession) -> int | None:
    """Number of tests that failed or broke off in the last run; None if it is not recorded."""
    if not session.executions:
        return None
    last = session.executions[-1]
    counted = last.results.failing if last.results is not None else None
    return counted if counted is not None else len(last.failures) or None


def causes_of(session: DebugSession) -> list[str]:
    """The root causes that its analyses name, each once."""
    runs = (run.analysis.category for run in session.executions if run.analysis is not None)
    return list(dict.fromkeys(category for category in runs if category))


def failure(record: FailureRecord) -> Wire:
    """One failure."""
    return objects.Failure.of(record, source=record.file)


def _run(run: Execution, held: bool | None) -> Wire:
    analysis = run.analysis
    return objects.Run.of(
        run,
        failures=list(map(failure, run.failures)),
        analysis=None
        if analysis is None
        else objects.Analysis.of(
            analysis, similar=[[one.session_id, one.file, one.resolution] for one in analysis.similar]
        ),
        fix=None if run.fix is None else objects.Fix.of(run.fix, held=held),
    )


def fix_rate(counts: FixCounts, level: float) -> Wire:
    """How often fixes held."""
    return objects.FixRate.of(counts, held=counts.passed, interval=counts.interval(level))


def session_details(session: DebugSession, snapshot: Snapshot, results: FixResults, level: float) -> Wire:
    """One debug session with all its content."""
    return objects.SessionDetails.of(
        session,
        **_row_values(session, snapshot),
        executions=[_run(run, held) for run, held in zip(session.executions, session.verdicts, strict=True)],
        patterns_identified=[_lesson_details(lesson, results, level) for lesson in session.lessons],
        recurring_failures=session.recurring,
        code_quality_issues=session.issues,
    )


def _lesson_details(lesson: LessonRecord, results: FixResults, level: float) -> Wire:
    return objects.LessonDetails.of(lesson, fixes=fix_rate(results.of_pattern(lesson.category, lesson.pattern), level))


def root_cause(cause: CauseReport, level: float) -> Wire:
    """One root cause."""
    return objects.RootCause.of(cause, fixes=fix_rate(cause.fixes, level))


def recurring_test(one: RecurringFailure) -> Wire:
    """A test that fails repeatedly."""
    return objects.RecurringTest.of(one, session_ids=one.sessions, claimed=one.recorded)


def fix_template(template: TemplateRecord, level: float) -> Wire:
    """A fix template."""
    return objects.FixTemplate.of(
        template, claimed=template.recorded, fixes=fix_rate(template.fixes, level), session_ids=template.sessions
    )


def retention_file(plan: RetentionPlan, due: bool) -> Wire:
    """A session file, and whether it is due."""
    return objects.RetentionFile.of(
        plan, due=due, terms=[objects.RetentionPeriod.of(one, id=one.session_id) for one in plan.periods]
    )


def file_move(moved: MoveRecord) -> Wire:
    """A file that was moved."""
    return objects.FileMove.of(session_ids=moved.sessions, **{"from": moved.source, "to": moved.target})


def archived_session(item: ArchivedRecord) -> Wire:
    """An archived session."""
    return objects.ArchivedSession.of(item.session, file=item.file, at=item.at, by=item.by)


def known_fix(fix: KnownFixRecord, level: float) -> Wire:
    """What an earlier session did about such an error."""
    return objects.KnownFix.of(
        fix,
        session=fix.session.id,
        source=fix.failure.file,
        message=fix.failure.message,
        held=fix.worked,
        results=fix_rate(fix.results, level),
        alike=fix.is_similar,
        same_file=fix.is_same_file,
    )


def offered_pattern(pattern: Pattern, assessment: Assessment) -> Wire:
    """An error pattern whose signature matches the message."""
    return objects.OfferedPattern.of(
        pattern, state=assessment.state, success_rate=assessment.rate, usage_count=assessment.uses
    )


def sessions_document(sessions: Sequence[DebugSession], snapshot: Snapshot, findings: object) -> Wire:
    """A list of debug sessions."""
    return objects.SessionList.of(sessions=[session_row(one, snapshot) for one in sessions], findings=findings)
