"""The JSON of the debug memory; see `core.cli.json.shapes`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.cli.json.shapes import Shape, number
from core.debug_memory.escalation_status import find_escalation
from core.records.times import iso

if TYPE_CHECKING:
    from core.debug_memory.archive import ArchivedSession
    from core.debug_memory.archive_journal import FileMove
    from core.debug_memory.effectiveness import FixCounts, FixResults
    from core.debug_memory.known_fixes import KnownFix
    from core.debug_memory.reports import CauseReport, FixTemplate, RecurringFailure
    from core.debug_memory.retention import RetentionPeriod, RetentionPlan
    from core.learning.assessment import Assessment
    from core.records.debug_sessions import Analysis, DebugSession, Escalation, Execution, Failure, Fix, Lesson, Results
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot


def session_json(session: DebugSession, snapshot: Snapshot) -> Shape:
    """One session as lists print it; `failing` counts the tests that failed in its last run."""
    found = find_escalation(session, snapshot)
    return {
        "id": session.id,
        "status": session.status or None,
        "escalated": found is not None,
        "escalated_at": iso(found.at) if found is not None else None,
        "call": _call_json(snapshot.escalations.get(session.id)),
        "file_path": session.file_path,
        "runs": len(session.executions),
        "failing": failing(session),
        "error_types": list(dict.fromkeys(f.error_type for run in session.executions for f in run.failures)),
        "causes": causes_of(session),
        "changed_at": iso(session.changed_at),
        "loop_id": session.loop_id or None,
        "task_id": session.task_id or None,
        "agent": session.agent or None,
        "file": session.file,
        "pointer": session.pointer,
    }


def _call_json(call: Escalation | None) -> Shape | None:
    """The newest call for a person; `context` is the file that keeps what surrounded the session."""
    if call is None:
        return None
    return {"at": iso(call.at), "by": call.by or None, "reason": call.reason, "context": call.file}


def failing(session: DebugSession) -> int | None:
    """How many tests failed, or broke off, in the last run; None where that is not told."""
    if not session.executions:
        return None
    last = session.executions[-1]
    counted = last.results.failing if last.results is not None else None
    return counted if counted is not None else len(last.failures) or None


def causes_of(session: DebugSession) -> list[str]:
    """The root causes that its analyses name, each once."""
    runs = (run.analysis.category for run in session.executions if run.analysis is not None)
    return list(dict.fromkeys(category for category in runs if category))


def session_details_json(session: DebugSession, snapshot: Snapshot, results: FixResults, level: float) -> Shape:
    """One session with all its content; `fixes` counts all sessions, `effectiveness` is what this one claims."""
    return {
        **session_json(session, snapshot),
        "created_at": iso(session.created_at),
        "iteration": session.iteration,
        "executions": [
            _execution_json(run, held) for run, held in zip(session.executions, session.verdicts, strict=True)
        ],
        "patterns_identified": [
            {
                **lesson_json(lesson),
                "fixes": held_json(results.of_pattern(lesson.category, lesson.pattern), level),
            }
            for lesson in session.lessons
        ],
        "recurring_failures": [
            {"test": one.test, "occurrences": one.occurrences, "resolution": one.resolution or None, "notes": one.notes}
            for one in session.recurring
        ],
        "code_quality_issues": [
            {
                "issue": one.issue,
                "location": one.location,
                "severity": one.severity or None,
                "addressed": one.addressed,
            }
            for one in session.issues
        ],
        "recommendations": list(session.recommendations),
    }


def lesson_json(lesson: Lesson) -> Shape:
    """One entry of (4) `patterns_identified`."""
    return {
        "pattern": lesson.pattern,
        "category": lesson.category or None,
        "frequency": lesson.frequency,
        "fix_template": lesson.fix_template,
        "effectiveness": number(lesson.effectiveness),
    }


def _execution_json(run: Execution, held: bool | None) -> Shape:
    return {
        "attempt": run.attempt,
        "at": iso(run.at),
        "code_hash": run.code_hash,
        "code": run.code,
        "environment": [list(pair) for pair in run.environment],
        "results": _results_json(run.results),
        "failures": [failure_json(failure) for failure in run.failures],
        "analysis": _analysis_json(run.analysis),
        "fix": _fix_json(run.fix, held),
    }


def _results_json(results: Results | None) -> Shape | None:
    if results is None:
        return None
    return {
        "total": results.total,
        "passed": results.passed,
        "failed": results.failed,
        "errors": results.errors,
        "skipped": results.skipped,
        "duration_ms": number(results.duration_ms),
        "coverage": number(results.coverage),
    }


def failure_json(failure: Failure) -> Shape:
    """One failure."""
    return {
        "error_type": failure.error_type,
        "message": failure.message,
        "source": failure.file or None,
        "line": failure.line,
        "function": failure.function or None,
        "test_name": failure.test_name,
        "test_file": failure.test_file or None,
        "test_line": failure.test_line,
        "stack_trace": failure.stack_trace,
        "expected": failure.expected,
        "actual": failure.actual,
    }


def _analysis_json(analysis: Analysis | None) -> Shape | None:
    if analysis is None:
        return None
    return {
        "root_cause": analysis.root_cause,
        "category": analysis.category or None,
        "strategy": analysis.strategy,
        "confidence": number(analysis.confidence),
        "related": list(analysis.related),
        "similar": [[one.session_id, one.file, one.resolution] for one in analysis.similar],
    }


def _fix_json(fix: Fix | None, held: bool | None) -> Shape | None:
    if fix is None:
        return None
    return {
        "description": fix.description,
        "diff": fix.diff,
        "diff_summary": fix.diff_summary,
        "files": list(fix.files),
        "verified": fix.verified,
        "held": held,
    }


def held_json(held: FixCounts, level: float) -> Shape:
    """How often fixes held, with the interval of the rate."""
    return {
        "held": held.passed,
        "failed": held.failed,
        "rate": number(held.rate),
        "interval": [number(bound) for bound in held.interval(level)],
    }


def cause_json(cause: CauseReport, level: float) -> Shape:
    """One root cause."""
    return {
        "category": cause.category or None,
        "sessions": cause.sessions,
        "passing": cause.passing,
        "failing": cause.failing,
        "fixes": held_json(cause.fixes, level),
    }


def recurrence_json(one: RecurringFailure) -> Shape:
    """A test that fails again and again."""
    return {
        "test": one.test,
        "runs": one.runs,
        "session_ids": list(one.sessions),
        "claimed": one.recorded,
        "resolution": one.resolution or None,
    }


def template_json(template: FixTemplate, level: float) -> Shape:
    """One fix template: what sessions claim, and what is known."""
    return {
        "pattern": template.pattern,
        "category": template.category,
        "fix_template": template.fix_template,
        "effectiveness": number(template.effectiveness),
        "claimed": [number(rate) for rate in template.recorded],
        "fixes": held_json(template.fixes, level),
        "session_ids": list(template.sessions),
    }


def kept_json(kept: RetentionPlan, due: bool) -> Shape:
    """One file, and how long its sessions are kept."""
    return {"file": kept.file, "due": due, "terms": [_term_json(term) for term in kept.periods]}


def _term_json(term: RetentionPeriod) -> Shape:
    return {
        "id": term.session_id,
        "status": term.status or None,
        "rule": term.rule,
        "days": term.days,
        "until": iso(term.until),
    }


def moved_json(moved: FileMove) -> Shape:
    """One file that was moved."""
    return {"from": moved.source, "to": moved.target, "session_ids": list(moved.sessions)}


def archived_session_json(item: ArchivedSession) -> Shape:
    """One archived session."""
    session = item.session
    return {
        "id": session.id,
        "status": session.status or None,
        "file_path": session.file_path,
        "changed_at": iso(session.changed_at),
        "file": item.file,
        "at": iso(item.at),
        "by": item.by or None,
    }


def known_fix_json(fix: KnownFix, level: float) -> Shape:
    """What an earlier session did against such an error."""
    return {
        "session": fix.session.id,
        "source": fix.failure.file or None,
        "message": fix.failure.message,
        "cause": fix.cause,
        "category": fix.category or None,
        "strategy": fix.strategy,
        "fix": fix.fix,
        "held": fix.worked,
        "results": held_json(fix.results, level),
        "failed": list(fix.failed),
        "alike": fix.is_similar,
        "same_file": fix.is_same_file,
    }


def offered_pattern_json(pattern: Pattern, assessment: Assessment) -> Shape:
    """An error pattern whose signature finds the message."""
    return {
        "id": pattern.id,
        "title": pattern.title,
        "error_pattern": pattern.error_pattern,
        "description": pattern.description,
        "state": assessment.state.value,
        "success_rate": number(assessment.rate),
        "usage_count": assessment.uses,
    }
