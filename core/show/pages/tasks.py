"""Tasks, attempts and debug sessions as documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from core.base.formatting import format_duration, format_percent
from core.base.text import plural
from core.files.file_reader import decode_json
from core.records.episodes import Action, Attempt, Milestone, Task
from core.show.pages import document as doc
from core.show.pages.document import code, fields, items, line, section
from core.show.pages.loops import answer_command, error_text
from core.show.pages.reflections import head as reflection_head
from core.show.pages.reflections import reflection_section, template
from core.show.pages.signs import attempt_sign, result_sign, session_status_sign, task_sign
from core.sources.episodes import to_text
from core.tasks.attempts import AttemptCondition, AttemptState, ReplayStep, ReplaySteps, Verdict
from core.tasks.log_summary import pick_error_line

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.records.debug_sessions import Analysis, DebugSession, Escalation, Execution, Failure, Fix, Results
    from core.records.loops import Loop
    from core.records.reflections import Reflection
    from core.tasks.history import AttemptDetail, TaskHistory, WholeHistory


MAX_ACTIONS: Final = 500  # Newest actions listed per attempt of a whole task; an attempt alone has all of them.
MAX_ATTEMPTS: Final = 50
VERDICT_SIGNS: Final = {
    Verdict.SUCCEEDED: doc.Sign(Verdict.SUCCEEDED.value, "good", "done"),
    Verdict.FAILED: doc.Sign(Verdict.FAILED.value, "bad", "failed"),
    Verdict.UNKNOWN: doc.Sign(Verdict.UNKNOWN.value, "quiet", "unknown"),
}
MAX_LEARNINGS: Final = 12
_NEWEST_ACTIONS: Final = 40
_SUMMARY_VALUES: Final = 500
_LOADING: Final = line(("loading…", "quiet"))

ConditionOf = Callable[[Attempt], AttemptCondition]


def task_document(history: TaskHistory, condition: ConditionOf, limit: int = MAX_ATTEMPTS) -> doc.Document:
    """Describe a task with the newest `limit` attempts and other entries."""
    blocks: list[doc.Block] = [
        *_task_head(history, condition),
        *attempt_table(history.attempts, condition, limit),
        *milestones(history.milestones[-limit:]),
        *map(reflection_section, history.reflections[-limit:]),
    ]
    counts = (("attempt", history.attempts), ("milestone", history.milestones), ("reflection", history.reflections))
    left = ", ".join(plural(len(all) - limit, f"earlier {noun}") for noun, all in counts if len(all) > limit)
    return doc.Document(f"Task {history.task.id}", (*blocks, *([line((f"{left} not shown", "quiet"))] if left else [])))


def whole_history_document(whole: WholeHistory, condition: ConditionOf) -> doc.Document:
    """Describe a task and every attempt with plan, actions, results and reflections."""
    history = whole.task
    numbers = {detail.attempt.number for detail in whole.attempts}
    return doc.Document(
        f"Task {history.task.id}",
        (
            *_task_head(history, condition),
            *section("Summary", _summary(history.summary)),
            *milestones([one for one in history.milestones if one.attempt is None]),
            *(_attempt_section(detail, condition) for detail in whole.attempts),
            *(reflection_section(one) for one in history.reflections if one.attempt not in numbers),
        ),
    )


def attempt_document(detail: AttemptDetail, condition: AttemptCondition, *, full: bool = False) -> doc.Document:
    """Describe one attempt; with `full` every action in full."""
    attempt = detail.attempt
    listed = [_step_section(step) for step in ReplaySteps(detail)] if full else action_table(detail)
    return doc.Document(
        f"Task {attempt.task_id}, attempt {attempt.number}",
        (
            *_attempt_blocks(detail, condition),
            *section("Actions", listed or [line(("No action recorded.", "quiet"))]),
            *_attempt_end(detail),
        ),
    )


def _task_head(history: TaskHistory, condition: ConditionOf) -> Iterable[doc.Block]:
    task = history.task
    last = condition(history.attempts[-1]).state if history.attempts else None
    yield line((task.description or "no description", "strong"))
    yield from fields(
        ("Status", (task_sign(task, last),)),
        *about_rows(task),
        ("Created", doc.Moment(task.created_at, "")),
        ("Completed" if task.completed_at else "Updated", doc.Moment(task.completed_at or task.updated_at, "")),
        ("Current attempt", _count(task.current_attempt)),
        ("Attempts", _count(task.total_attempts)),
        ("Agent", task.agent),
        ("Loop", task.loop_id),
        ("Quality", _rate(history.final_quality)),
        ("Completion", _rate(history.completion)),
    )


def about_rows(task: Task) -> tuple[tuple[str, str], ...]:
    return (("Done when", task.criteria), ("Tags", ", ".join(task.tags)), ("Related", ", ".join(task.related)))


def attempt_table(
    attempts: Sequence[Attempt], condition: ConditionOf, limit: int = MAX_ATTEMPTS
) -> Iterable[doc.Block]:
    """Describe the newest attempts in a table, oldest first."""
    if not attempts:
        return [line(("No attempts yet.", "quiet"))]
    return [
        doc.Table(
            ("attempt", "outcome", "quality", "errors", "took", "actions", "iterations", "started", "plan"),
            tuple(_attempt_row(one, condition(one)) for one in attempts[-limit:]),
            right=(0, 2, 3, 4, 5, 6),
            expendable=(7, 6, 5, 4, 3),
        )
    ]


def _attempt_row(attempt: Attempt, condition: AttemptCondition) -> tuple[doc.Text, ...]:
    return (
        ((str(attempt.number), "name"),),
        (attempt_sign(attempt, condition),),
        (_rate(final_quality(attempt)) or "—",),
        ((_count(attempt.errors) or "—", "bad" if attempt.errors else ""),),
        (took(attempt),),
        (_count(attempt.actions) or "—",),
        (_count(attempt.iterations) or "—",),
        (doc.Moment(attempt.started_at),),
        (attempt.plan, (f"{'   because: ' * bool(attempt.plan and attempt.reason)}{attempt.reason}", "quiet")),
    )


def took(attempt: Attempt) -> str:
    """Format the duration to the end or newest action; "—" if a time is missing."""
    end = attempt.ended_at or attempt.last_action_at
    if attempt.started_at is None or end is None:
        return "—"
    return format_duration((end - attempt.started_at).total_seconds())


def final_quality(attempt: Attempt) -> float | None:
    """Return the recorded final quality, 0..1, else that of the last iteration."""
    if attempt.final_quality is not None:
        return attempt.final_quality
    return attempt.quality[-1].quality if attempt.quality else None


def retry_text(attempts: Sequence[Attempt]) -> doc.Text:
    """Describe whether retries improved the quality; empty without two values."""
    known = [quality for quality in map(final_quality, attempts) if quality is not None]
    if len(known) < 2:
        return ()
    retries = len(known) - 1
    better, worse = (sum(pick(a, b) for a, b in pairwise(known)) for pick in (float.__lt__, float.__gt__))
    head = (f"{better} of {plural(retries, 'retry', 'retries')} improved: ", "quiet")
    if retries in (better, worse):
        each = "each retry" if retries > 1 else "the retry"
        head = (f"{each} improved: ", "good") if better else (f"{each} was worse: ", "bad")
    return (head, " → ".join(format_percent(quality) for quality in known[-6:]))


def attempt_head(attempt: Attempt, condition: AttemptCondition) -> doc.Line:
    """Describe number, outcome or state, quality and completion on one line."""
    quality = final_quality(attempt)
    return line(
        (f"Attempt {attempt.number}   ", "strong"),
        attempt_sign(attempt, condition),
        (f"   {condition.reason}", "quiet") if condition.state is not AttemptState.ENDED else None,
        f"   quality {format_percent(quality)}" if quality is not None else None,
        (f"   completion {format_percent(attempt.completion)}", "quiet") if attempt.completion is not None else None,
    )


def attempt_facts(attempt: Attempt, task: Task | None = None) -> Iterable[doc.Block]:
    known = ((attempt.iterations, "iteration"), (attempt.actions, "action"), (attempt.errors or None, "error"))
    counts = [f"{'running for' if attempt.is_open else 'took'} {took(attempt)}" if took(attempt) != "—" else ""]
    counts += [plural(count, noun) for count, noun in known if count is not None]
    return fields(
        ("Task", task.description or task.id if task is not None else ""),
        ("Plan", attempt.plan),
        ("Reason", attempt.reason),
        ("Agent", attempt.agent),
        ("Started", doc.Moment(attempt.started_at, "")),
        ("Ended", doc.Moment(attempt.ended_at, "")),
        ("Counts", ", ".join(filter(None, counts))),
    )


def attempt_notes(attempt: Attempt) -> Iterable[doc.Block]:
    for title, texts, bullet in (
        ("What worked", attempt.worked, doc.Sign("", "good", "done")),
        ("What did not work", attempt.failed, doc.Sign("", "bad", "failed")),
        ("Suggestions for next time", attempt.suggestions, doc.Sign("", "accent", "arrow")),
    ):
        yield from section(title, items("", texts, bullet=bullet))


def _attempt_section(detail: AttemptDetail, condition: ConditionOf) -> doc.Section:
    attempt = detail.attempt
    state = condition(attempt)
    left = len(detail.actions) - MAX_ACTIONS
    listed = []
    for action in detail.actions[max(left, 0) :]:
        error = f" ({error_line(action)})" if action.has_failed and action.error.strip() else ""
        listed.append(f"{_step_title(ReplayStep(action))}{error}")
    note = [line((f"{plural(left, 'earlier action')} left out; the export of this attempt has them.", "quiet"))]
    actions: list[doc.Block] = [*(note if left > 0 else []), *items("", listed)]
    return doc.Section(
        f"Attempt {attempt.number}: {attempt_sign(attempt, state).text}",
        (*_attempt_blocks(detail, state), *section("Actions", actions), *_attempt_end(detail)),
    )


def _attempt_blocks(detail: AttemptDetail, condition: AttemptCondition) -> Iterable[doc.Block]:
    attempt = detail.attempt
    yield attempt_head(attempt, condition)
    yield from attempt_facts(attempt)
    yield from fields(("Iterations planned", _count(detail.estimated_iterations)))
    yield from plan_blocks(attempt, detail)
    yield from attempt_notes(attempt)
    values = []
    for place, one in enumerate(attempt.quality, 1):
        change = f" ({one.change})" if one.change else ""
        number = one.iteration if one.iteration is not None else place
        values.append(f"iteration {number}: {format_percent(one.quality)}{change}")
    yield from section("Quality by iteration", items("", values))
    yield from milestones(detail.milestones)


def _attempt_end(detail: AttemptDetail) -> Iterable[doc.Block]:
    yield from section("Results", items("", detail.results))
    yield from map(reflection_section, detail.reflections)


def plan_blocks(attempt: Attempt, detail: AttemptDetail) -> Iterable[doc.Block]:
    """Describe the plan file, or the one-line plan with its recorded steps."""
    yield from section("Plan", code("", detail.plan_text, "markdown"))
    if not detail.plan_text:
        yield from section("Steps", items("", detail.steps, is_numbered=True))


def milestones(found: Sequence[Milestone]) -> Iterable[doc.Block]:
    rows: list[doc.Text] = [
        (
            *((doc.Moment(one.at), "  ") if one.at else ()),
            one.event,
            (f"  attempt {one.attempt}" if one.attempt is not None else "", "quiet"),
            (f"  {one.details}" if one.details else "", "quiet"),
        )
        for one in found
    ]
    return section("Milestones", items("", rows))


def error_line(action: Action) -> str:
    """Return the most informative line of a failed action's error, or ""."""
    return pick_error_line(action.error, action.output) if action.error.strip() else ""


def action_text(action: Action) -> doc.Text:
    has_failed = action.has_failed
    return (
        (f"{action.number:>5} ", "quiet"),
        result_sign(False if has_failed else action.success),
        (f" {action.tool or action.type or 'action':<8}", "strong" if has_failed else ""),
        f" {action.about}",
        (f"   {error_line(action)}" if has_failed else "", "bad"),
    )


def action_table(detail: AttemptDetail) -> Iterable[doc.Block]:
    rows = tuple(
        (
            ((str(action.number), "quiet"),),
            (doc.Moment(action.at),),
            (action.type or action.tool,),
            (VERDICT_SIGNS[ReplayStep(action).verdict],),
            (action.about,),
            ((error_line(action), "bad") if action.has_failed else (action.reasoning, "quiet"),),
        )
        for action in detail.actions
    )
    return (
        [doc.Table(("action", "at", "type", "result", "on", "why"), rows, right=(0,), expendable=(1,))] if rows else []
    )


def _step_title(step: ReplayStep) -> str:
    action = step.action
    tool = action.tool if action.tool.lower() != action.type.lower() else ""
    what = " ".join(filter(None, (action.type, tool, action.about)))
    return f"{action.number}. {what or 'action'}: {step.verdict.value}"


def _step_section(step: ReplayStep) -> doc.Section:
    action = step.action
    blocks: list[doc.Block] = [
        *fields(
            ("At", doc.Moment(action.at)),
            ("Iteration", _count(action.iteration)),
            ("Why", action.reasoning),
            ("Expected", action.expected),
        )
    ]
    for name, text in step.params:
        blocks += code(name, text)
    blocks += code("", "\n".join(step.diff), "diff")
    for text in (step.result, step.output):
        blocks += code("", text)
    return doc.Section(_step_title(step), tuple(blocks))


def task_notes(task: Task, reflections: Sequence[Reflection]) -> Iterable[doc.Block]:
    """Describe the learnings of the attempts so far, and the completion criteria."""
    known = [one for one in reflections if one.text]
    rows: list[doc.Text] = []
    for one in known[:MAX_LEARNINGS]:
        number = (f"{one.attempt if one.attempt is not None else '':>4}  ", "name")
        rows.append((number, ("draft  " if one.draft else "", "warning"), one.text))
    yield from section("Lessons so far", items("", rows), plural(len(known), "reflection"))
    if about := list(fields(*about_rows(task))):
        yield line("")
        yield from about


def reflection_blocks(reflections: Sequence[Reflection], *, of_task: bool) -> Iterable[doc.Block]:
    """Describe reflections on an attempt or a task, newest first."""
    for n, one in enumerate(reflections):
        if n:
            yield line("")
        yield reflection_head(one, f"attempt {one.attempt}" if of_task and one.attempt is not None else "")
        yield from template(one)
    if not reflections:
        yield _no_reflection("task" if of_task else "attempt")


def _no_reflection(noun: str) -> doc.Block:
    return line((f"No reflection on this {noun} yet: ralphdeck task reflect", "quiet"))


def plan_tab(attempt: Attempt, detail: AttemptDetail | None) -> Iterable[doc.Block]:
    """Describe the recorded plan and its steps."""
    if detail is None:
        return [_LOADING]
    blocks = [*([] if detail.plan_text else fields(("Plan", attempt.plan))), *plan_blocks(attempt, detail)]
    return blocks or [line(("No plan recorded for this attempt.", "quiet"))]


def last_actions(detail: AttemptDetail | None, key: str, limit: int = _NEWEST_ACTIONS) -> Iterable[doc.Block]:
    """Describe the newest actions, newest first; `key` plays them."""
    if detail is None:
        return [_LOADING]
    count, errors = len(detail.actions), len(detail.actions.errors)
    if not count:
        return [line(("No action recorded in this attempt.", "quiet"))]
    first = line(f"{plural(count, 'action')}, {plural(errors, 'error')}", (f"   {key}: replay", "quiet"))
    return [first, *(line(*action_text(action)) for action in reversed(detail.actions[-limit:]))]


def _summary(summary: Iterable[tuple[str, str]]) -> Iterable[doc.Block]:
    for name, text in summary:
        value = decode_json(text.encode("utf-8", "replace")).value if text[:1] in ("[", "{") else None
        if value == [] or value == {} or not text:
            continue
        if isinstance(value, list):
            yield from items(name, [_spelled(item) for item in value[-_SUMMARY_VALUES:]])
        else:
            yield from fields((name, _spelled(value) if isinstance(value, dict) else text))


def _spelled(value: Any) -> str:
    """Format a lesson (`attempt 1: types first`) or other data (`passed 3`)."""
    if not isinstance(value, dict):
        return to_text(value)
    if isinstance(value.get("learning"), str):
        attempt = value.get("attempt_id")
        of = "" if attempt is None else f"attempt {to_text(attempt)}: "
        return f"{of}{value['learning']}{' (draft)' if value.get('draft') is True else ''}"
    return ", ".join(f"{name.replace('_', ' ')} {to_text(item)}" for name, item in value.items() if item is not None)


def _count(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _rate(rate: float | None) -> str:
    return "" if rate is None else format_percent(rate)


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
    from core.tasks.escalations import escalation_reason, find_escalation  # a list of tasks does not need their reader

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
    """Describe why a session asks, what was tried, and how to answer in its `loop`."""
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
