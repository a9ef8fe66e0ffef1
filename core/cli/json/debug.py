"""JSON of the debug memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from core.cli.json.decisions import Decided, DecidedTogether, Extraction
from core.cli.json.loops import RecordUpdate
from core.cli.json.wire import Wire, wire
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
EscalationCall: Final = wire(
    "EscalationCall",
    "The newest call for a person; `context` is the file with what was saved of the session.",
    "at:time by? reason context",
)
SessionRow: Final = wire(
    "SessionRow",
    "One debug session; `failing` is the number of tests that failed in its last run.",
    """id status? escalated:bool escalated_at:time call:EscalationCall? file_path runs:int failing:int?
    error_types:[text] causes:[text] changed_at:time loop_id? task_id? agent? file pointer""",
)
SessionList: Final = wire(
    "SessionList", "`debug list`, `debug similar`, `debug escalations`.", "sessions:[SessionRow] findings:[Finding]"
)


def session_row(session: DebugSession, snapshot: Snapshot) -> Wire:
    """One debug session."""
    return SessionRow.of(session, **_row_values(session, snapshot))


def _row_values(session: DebugSession, snapshot: Snapshot) -> dict[str, object]:
    found, call = find_escalation(session, snapshot), snapshot.escalations.get(session.id)
    return {
        "escalated": found is not None,
        "escalated_at": found.at if found is not None else None,
        "call": None if call is None else EscalationCall.of(call, context=call.file),
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


TestResults: Final = wire(
    "TestResults",
    "The results of one run.",
    "total:int? passed:int? failed:int? errors:int? skipped:int? duration_ms:number? coverage:number?",
)
Failure: Final = wire(
    "Failure",
    "One failure; `source` is the file that raised it.",
    "error_type message source? line:int? function? test_name test_file? test_line:int? stack_trace expected actual",
)


def failure(record: FailureRecord) -> Wire:
    """One failure."""
    return Failure.of(record, source=record.file)


Analysis: Final = wire(
    "Analysis",
    "The analysis of a failure; `similar` are sessions with file and resolution.",
    "root_cause category? strategy confidence:number? related:[text] similar:[any]",
)
Fix: Final = wire(
    "Fix",
    "A fix; `verified` is what the session reports, `held` what later runs show.",
    "description diff diff_summary files:[text] verified:bool? held:bool?",
)
Run: Final = wire(
    "Run",
    "One run of the tests, and what was done about its failures.",
    """attempt:int? at:time code_hash code environment:[any] results:TestResults? failures:[Failure] analysis:Analysis?
    fix:Fix?""",
)


def _run(run: Execution, held: bool | None) -> Wire:
    analysis = run.analysis
    return Run.of(
        run,
        failures=list(map(failure, run.failures)),
        analysis=None
        if analysis is None
        else Analysis.of(analysis, similar=[[one.session_id, one.file, one.resolution] for one in analysis.similar]),
        fix=None if run.fix is None else Fix.of(run.fix, held=held),
    )


FixRate: Final = wire(
    "FixRate",
    "How often fixes held, with the interval of the rate.",
    "held:int failed:int rate:number? interval:[number]",
)


def fix_rate(counts: FixCounts, level: float) -> Wire:
    """How often fixes held."""
    return FixRate.of(counts, held=counts.passed, interval=counts.interval(level))


Lesson: Final = wire(
    "Lesson",
    "A lesson of a session; `effectiveness` is what the session reports.",
    "pattern category? frequency:int? fix_template effectiveness:number?",
)
LessonDetails: Final = wire(
    "LessonDetails", "A lesson of a session, with the results of its fixes over all sessions.", "fixes:FixRate", Lesson
)
RepeatedFailure: Final = wire(
    "RepeatedFailure", "A test that failed repeatedly in a session.", "test occurrences:int? resolution? notes"
)
QualityIssue: Final = wire("QualityIssue", "A code quality issue.", "issue location severity? addressed:bool?")
SessionDetails: Final = wire(
    "SessionDetails",
    "One debug session with all its content.",
    """created_at:time iteration:int? executions:[Run] patterns_identified:[LessonDetails]
    recurring_failures:[RepeatedFailure] code_quality_issues:[QualityIssue] recommendations:[text]""",
    SessionRow,
)
SessionDocument: Final = wire("SessionDocument", "`debug show`.", "session:SessionDetails findings:[Finding]")


def session_details(session: DebugSession, snapshot: Snapshot, results: FixResults, level: float) -> Wire:
    """One debug session with all its content."""
    return SessionDetails.of(
        session,
        **_row_values(session, snapshot),
        executions=[_run(run, held) for run, held in zip(session.executions, session.verdicts, strict=True)],
        patterns_identified=[_lesson_details(lesson, results, level) for lesson in session.lessons],
        recurring_failures=session.recurring,
        code_quality_issues=session.issues,
    )


def _lesson_details(lesson: LessonRecord, results: FixResults, level: float) -> Wire:
    return LessonDetails.of(lesson, fixes=fix_rate(results.of_pattern(lesson.category, lesson.pattern), level))


RootCause: Final = wire(
    "RootCause",
    "One root cause: sessions, how many passed or failed, and how often fixes held.",
    "category? sessions:int passing:int failing:int fixes:FixRate",
)
RecurringTest: Final = wire(
    "RecurringTest",
    "A test that fails repeatedly over all sessions; `claimed` is the count that sessions report.",
    "test runs:int session_ids:[text] claimed:int resolution?",
)
CauseList: Final = wire(
    "CauseList", "`debug causes`.", "causes:[RootCause] recurring:[RecurringTest] findings:[Finding]"
)


def root_cause(cause: CauseReport, level: float) -> Wire:
    """One root cause."""
    return RootCause.of(cause, fixes=fix_rate(cause.fixes, level))


def recurring_test(one: RecurringFailure) -> Wire:
    """A test that fails repeatedly."""
    return RecurringTest.of(one, session_ids=one.sessions, claimed=one.recorded)


FixTemplate: Final = wire(
    "FixTemplate",
    "A fix template: the rates that sessions report (`claimed`), and the results of its fixes.",
    "pattern category fix_template effectiveness:number? claimed:[number] fixes:FixRate session_ids:[text]",
)
FixTemplateList: Final = wire("FixTemplateList", "`debug templates`.", "templates:[FixTemplate] findings:[Finding]")


def fix_template(template: TemplateRecord, level: float) -> Wire:
    """A fix template."""
    return FixTemplate.of(
        template, claimed=template.recorded, fixes=fix_rate(template.fixes, level), session_ids=template.sessions
    )


RetentionPeriod: Final = wire(
    "RetentionPeriod",
    "How long a session is kept; `until` is null for one in progress.",
    "id status? rule days:int? until:time",
)
RetentionFile: Final = wire(
    "RetentionFile", "A session file, and whether it is due.", "file due:bool terms:[RetentionPeriod]"
)
RetentionDocument: Final = wire("RetentionDocument", "`debug archive-expired --dry-run`.", "plan:[RetentionFile]")


def retention_file(plan: RetentionPlan, due: bool) -> Wire:
    """A session file, and whether it is due."""
    return RetentionFile.of(plan, due=due, terms=[RetentionPeriod.of(one, id=one.session_id) for one in plan.periods])


FileMove: Final = wire("FileMove", "A file that was moved.", "from to session_ids:[text]")


def file_move(moved: MoveRecord) -> Wire:
    """A file that was moved."""
    return FileMove.of(session_ids=moved.sessions, **{"from": moved.source, "to": moved.target})


ArchiveResult: Final = wire("ArchiveResult", "`debug archive-expired`.", "moved:[FileMove] warnings:[text]")
RestoreResult: Final = wire(
    "RestoreResult",
    "`debug restore`; `others` are further archived files with the session.",
    "moved:[FileMove] others:[text]",
)
ArchivedSession: Final = wire(
    "ArchivedSession", "An archived session.", "id status? file_path changed_at:time file at:time by?"
)
ArchivedSessionList: Final = wire(
    "ArchivedSessionList", "`debug archived`.", "archived:[ArchivedSession] findings:[Finding]"
)


def archived_session(item: ArchivedRecord) -> Wire:
    """An archived session."""
    return ArchivedSession.of(item.session, file=item.file, at=item.at, by=item.by)


KnownFix: Final = wire(
    "KnownFix",
    "What an earlier session did about such an error; `alike` is the similarity of the messages.",
    """session source? message cause category? strategy fix held:bool? results:FixRate failed:[text] alike:number
    same_file:bool""",
)


def known_fix(fix: KnownFixRecord, level: float) -> Wire:
    """What an earlier session did about such an error."""
    return KnownFix.of(
        fix,
        session=fix.session.id,
        source=fix.failure.file,
        message=fix.failure.message,
        held=fix.worked,
        results=fix_rate(fix.results, level),
        alike=fix.is_similar,
        same_file=fix.is_same_file,
    )


OfferedPattern: Final = wire(
    "OfferedPattern",
    "An error pattern whose signature matches the message.",
    "id title error_pattern description state success_rate:number? usage_count:int",
)


def offered_pattern(pattern: Pattern, assessment: Assessment) -> Wire:
    """An error pattern whose signature matches the message."""
    return OfferedPattern.of(pattern, state=assessment.state, success_rate=assessment.rate, usage_count=assessment.uses)


FailureDocument: Final = wire(
    "FailureDocument",
    "`debug failure`; `error` is the first of the errors.",
    """error:Failure? errors:[Failure] fixes:[KnownFix] templates:[FixTemplate] patterns:[OfferedPattern] text
    findings:[Finding]""",
)
SuccessDocument: Final = wire(
    "SuccessDocument",
    "`debug success`; `bead` is the loop or attempt that gets the outcome.",
    """session_id file bead applied:[text] lessons:[Lesson] lessons_written:bool file_changed:bool problem?
    records:[RecordUpdate] extraction:Extraction? decided:Decided|DecidedTogether? warnings:[text]""",
    uses=[RecordUpdate, Extraction, Decided, DecidedTogether],
)
EscalationDocument: Final = wire("EscalationDocument", "`debug escalate`.", "session_id file")


def sessions_document(sessions: Sequence[DebugSession], snapshot: Snapshot, findings: object) -> Wire:
    """A list of debug sessions."""
    return SessionList.of(sessions=[session_row(one, snapshot) for one in sessions], findings=findings)
