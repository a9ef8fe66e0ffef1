"""Debug sessions as documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from core.base.formatting import format_duration, format_percent
from core.base.text import plural
from core.show.pages import document as doc
from core.show.pages.document import code, fields, items, line, section
from core.show.pages.loops import answer_command, error_text
from core.show.pages.signs import result_sign, session_status_sign
from core.tasks.escalations import escalation_reason, find_escalation

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.debug_sessions import Analysis, DebugSession, Escalation, Execution, Failure, Fix, Results
    from core.records.loops import Loop

_PLAIN: Final = frozenset({"runtime", "runtime_version", "test_framework"})  # environment entries that need no name
_HASH_CHARS: Final = 12
_INDENT: Final = 4


def session_document(state: ProjectState, session: DebugSession) -> doc.Document:
    return doc.Document(
        f"Debug session {session.id}", (*runs(state, session), *section("Lessons", lessons(state, session)))
    )


def runs(state: ProjectState, session: DebugSession, *, is_short: bool = False) -> Iterable[doc.Block]:
    """Describe the runs in order, with failures, code and diffs unless `is_short`."""
    yield from head(state, session)
    if not session.executions and not is_short:
        yield line("")
        yield line(("Nothing has been run in this session yet.", "quiet"))
    before: Execution | None = None
    for number, (run, held) in enumerate(zip(session.executions, session.verdicts, strict=True), 1):
        yield line("")
        label = run.attempt if run.attempt is not None else number
        at = ("   ", doc.Moment(run.at)) if run.at else ()
        yield line((f"Run {label}", "strong"), "   ", *results_text(run.results), *at)
        if not is_short:
            yield from _environment(run, before)
            yield from code("", run.code, indent=_INDENT)
            yield from (block for failure in run.failures for block in failure_blocks(failure))
        yield from analysis_blocks(run.analysis, is_short=is_short)
        yield from fix_blocks(run.fix, held, with_diff=not is_short)
        before = run


def head(state: ProjectState, session: DebugSession) -> Iterable[doc.Block]:
    call = state.snapshot.escalations.get(session.id)
    related = ", ".join(dict.fromkeys(filter(None, (session.loop_id, session.task_id))))
    yield line((session.file_path or session.id, "strong"))
    yield line(
        session_status_sign(session, state.snapshot),
        *((("   started ", "quiet"), doc.Moment(session.created_at)) if session.created_at else ()),
        *((("   changed ", "quiet"), doc.Moment(session.changed_at, is_age=True)) if session.changed_at else ()),
        (f"   by {session.agent}", "quiet") if session.agent else None,
        (f"   iteration {session.iteration}", "quiet") if session.iteration is not None else None,
    )
    if find_escalation(session, state.snapshot) is not None:
        yield line(("Needs a human: ", "warning strong"), escalation_reason(session, call))
    if call is not None:
        yield escalation_line(call)
        yield from (escalation_line(one) for one in reversed(call.earlier))
    yield from fields(
        ("Loop or task", related and (related, "quiet")),
        ("File", (f"{session.file} {session.pointer}".strip(), "quiet")),
    )


def help_wanted(session: DebugSession, loop: Loop | None = None) -> Iterable[doc.Block]:
    """Describe why an escalated session asks, what was tried, in which files, and how to answer; `loop` is its work."""
    analyses = [run.analysis for run in session.executions if run.analysis is not None]
    last = analyses[-1] if analyses else None
    tried = [run.fix for run in session.executions if run.fix is not None]
    files = dict.fromkeys(filter(None, (session.file_path, *(file for fix in tried for file in fix.files))))
    own = answer_command(loop) if loop is not None else ()
    yield from fields(
        ("Because", last.root_cause if last is not None else ""),
        ("It suggests", last.strategy if last is not None else ""),
        ("To decide", "; ".join(session.recommendations)),
        ("Files", ", ".join(files)),
        ("Tried", "; ".join(fix.description or fix.diff_summary for fix in tried)),
        ("Answer", own or "in the session of its agent, with what you have decided"),
    )


def escalation_line(call: Escalation) -> doc.Line:
    return line(
        (f"escalated by {call.by or 'an unnamed agent'}, ", "quiet"),
        doc.Moment(call.at, is_age=True),
        ("; context kept in ", "quiet"),
        (call.file, "name"),
    )


def results_text(results: Results | None) -> doc.Text:
    if results is None:
        return (("no result", "quiet"),)
    of = f" of {results.total:,}" if results.total is not None else ""
    errors = "error" if results.errors == 1 else "errors"
    counts = [f"{results.passed:,}{of} passed"] if results.passed is not None else []
    for count, word in ((results.failed, "failed"), (results.errors, errors), (results.skipped, "skipped")):
        counts += [f"{count:,} {word}"] if count else []
    return (
        result_sign(results.green),
        f" {', '.join(counts) or 'no counts'}",
        (f"   coverage {format_percent(results.coverage)}" if results.coverage is not None else "", "name"),
        (f"   took {format_duration(results.duration_ms / 1000)}" if results.duration_ms is not None else "", "quiet"),
    )


def _environment(run: Execution, before: Execution | None) -> Iterable[doc.Fields]:
    plain = " ".join(value for name, value in run.environment if name in _PLAIN)
    named = [f"{name.replace('_', ' ')} {value}" for name, value in run.environment if name not in _PLAIN]
    named += [f"code {run.code_hash[:_HASH_CHARS]}"] if run.code_hash else []
    is_same = run.code_hash and before is not None and before.code_hash == run.code_hash
    listed = ", ".join(filter(None, (plain, *named)))
    unchanged = ("  unchanged since the run before" if is_same else "", "warning")
    yield from fields(("with", (listed, unchanged) if listed else None), indent=_INDENT)


def failure_blocks(failure: Failure) -> Iterable[doc.Block]:
    """Describe the error and location of a failure, its test, and the trace."""
    test = f"{failure.test_file}:{failure.test_line}" if failure.test_line is not None else failure.test_file
    yield line(doc.Sign("", "bad", "failed"), " ", *error_text(failure), indent=2)
    yield from fields(
        ("test", "  ".join(filter(None, (failure.test_name, test and f"({test})")))),
        ("expected", failure.expected),
        ("actual", failure.actual),
        indent=_INDENT,
    )
    yield from code("", failure.stack_trace, indent=_INDENT * 2)


def analysis_blocks(analysis: Analysis | None, *, is_short: bool = False) -> Iterable[doc.Block]:
    """Describe the root cause, and unless `is_short` strategy and relations."""
    if analysis is None:
        return []
    confidence = f"   confidence {format_percent(analysis.confidence)}" if analysis.confidence is not None else ""
    cause: doc.Text | None = None
    if analysis.root_cause or analysis.category:
        category = f"{analysis.category}  " if analysis.category else ""
        cause = ((category, "warning"), analysis.root_cause, (confidence, "quiet"))
    similar = ["  ".join(filter(None, (one.session_id, one.file, one.resolution))) for one in analysis.similar]
    more = [("related", text) for text in analysis.related] + [("similar", text) for text in similar]
    return fields(("cause", cause), *(() if is_short else (("strategy", analysis.strategy), *more)), indent=_INDENT)


def fix_blocks(fix: Fix | None, held: bool | None, *, with_diff: bool = True) -> Iterable[doc.Block]:
    """Describe a fix and whether it worked, as verified or shown by later runs."""
    if fix is None:
        return
    result = doc.Sign("not verified", "quiet", "waiting")
    if held is not None:
        word = "verified" if fix.verified else "helped, not verified"
        result = doc.Sign(word, "good", "done") if held else doc.Sign("did not help", "bad", "failed")
    text = (result, f"  {fix.description}", (f"   {fix.diff_summary}" if fix.diff_summary else "", "quiet"))
    yield from fields(("fix", text), ("changed", ", ".join(fix.files)), indent=_INDENT)
    if with_diff:
        yield from code("", fix.diff, "diff", indent=_INDENT * 2)


def lessons(state: ProjectState, session: DebugSession) -> Iterable[doc.Block]:
    results = state.debug.fix_results
    found: list[doc.Text] = []
    for lesson in session.lessons:
        claimed = f"claimed {format_percent(lesson.effectiveness)}" if lesson.effectiveness is not None else ""
        count = f"seen {plural(lesson.frequency, 'time')}" if lesson.frequency is not None else ""
        known = ", ".join(filter(None, (count, results.of_lesson(lesson).text or claimed)))
        template = f"   fix: {lesson.fix_template}" if lesson.fix_template else ""
        found.append((lesson.pattern, _spaced(lesson.category, "warning"), _spaced(known, "quiet"), template))
    recurring: list[doc.Text] = [
        (
            one.test,
            _spaced(plural(one.occurrences, "time") if one.occurrences is not None else "", "quiet"),
            _spaced(one.resolution.replace("_", " "), "name"),
            _spaced(one.notes, "quiet"),
        )
        for one in session.recurring
    ]
    words = {True: "addressed", False: "not addressed", None: ""}
    issues: list[doc.Text] = [
        (
            (f"{issue.severity}  " if issue.severity else "", "warning"),
            issue.issue,
            _spaced(issue.location, "quiet"),
            _spaced(words[issue.addressed], "good" if issue.addressed else "quiet"),
        )
        for issue in session.issues
    ]
    blocks = [
        *section("Patterns", items("", found)),
        *section("Recurring failures", items("", recurring)),
        *section("Code quality", items("", issues)),
        *section("Recommended", items("", session.recommendations, bullet=doc.Sign("", "accent", "arrow"))),
    ]
    return blocks or [line(("No lesson recorded in this session.", "quiet"))]


def _spaced(text: str, style: str) -> tuple[str, str]:
    return (f"   {text}" if text else "", style)
