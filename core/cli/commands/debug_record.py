"""`ralphdeck debug record` and `run`: record a debug session and its runs."""

from __future__ import annotations

import os
import selectors
import shlex
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from core.base.errors import BadInput, ProjectNotFound, Refused
from core.base.paths import BEGIN_COMMAND, is_folder, relative_to_project
from core.base.text import plural, visible_line
from core.cli.commands.reports import print_recorded_counts
from core.cli.json import debug as debug_json
from core.cli.json.loops import record_update
from core.cli.support.options import COUNT, FRACTION, DecidingCommand, OneOf, ReadingCommand, choose_mode
from core.cli.support.output import end, line, percent, print_bytes, print_object, remark, wants_json, warn
from core.cli.support.process import read_input
from core.cli.support.project import (
    chosen_project,
    complete_loop,
    complete_pattern,
    complete_session,
    decider,
    now,
    open_project,
)
from core.files.file_reader import MAX_BYTES
from core.records.debug_sessions import (
    ABANDONED,
    ENDS,
    ESCALATED,
    PASSED,
    RESOLVED,
    ROOT_CAUSES,
    Analysis,
    Failure,
    Fix,
)
from core.tasks.debug_index import ANY_FILE
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.project.error_advice import SuccessResult
    from core.records.debug_sessions import DebugSession, Execution
    from core.tasks.recorder import DebugRecorder


MAX_COPY: Final = 4 << 20  # bytes of output that are kept: half from its start, half from its end
_CHUNK: Final = 1 << 16
_LINGER_SECONDS: Final = 0.5  # wait for output of programs that the command left running
_POLL_SECONDS: Final = 0.1
_SIGNALLED: Final = 128  # plus the number of the signal, as in a shell


class CommandRun(NamedTuple):
    """A command that ended."""

    exit_code: int
    output: bytes  # standard output and standard error, as they came
    report: bytes  # standard output alone
    duration_ms: float


class _Copy:
    """The start and the end of a stream."""

    def __init__(self) -> None:
        self._start = bytearray()
        self._end = bytearray()

    def add(self, data: bytes) -> None:
        room = max(MAX_COPY // 2 - len(self._start), 0)
        self._start += data[:room]
        self._end += data[room:]
        if len(self._end) > MAX_COPY:
            del self._end[: -MAX_COPY // 2]

    def get(self) -> bytes:
        return bytes(self._start + self._end[-MAX_COPY // 2 :])


def run_command(words: Sequence[str], *, quiet_stdout: bool = False) -> CommandRun:
    """Run a command in the current folder without a shell, and wait for it.

    With `quiet_stdout` its standard output goes to standard error. An interrupt reaches the command too; it is raised
    after the command has ended. Raises BadInput if the command cannot be started.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot run {visible_line(words[0], 120)}: {reason}") from None
    output, report = _Copy(), _Copy()
    is_interrupted = False
    assert child.stdout is not None and child.stderr is not None
    with child.stdout, child.stderr, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, 2 if quiet_stdout else 1)
        selector.register(child.stderr, selectors.EVENT_READ, 2)
        ended: float | None = None
        while selector.get_map():
            try:
                ready = selector.select(_POLL_SECONDS)
            except KeyboardInterrupt:
                is_interrupted = True
                continue
            if not ready:
                ended = ended or (time.monotonic() if child.poll() is not None else None)
                if ended is not None and time.monotonic() - ended > _LINGER_SECONDS:
                    break
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                output.add(data)
                if key.fileobj is child.stdout:
                    report.add(data)
                with suppress(OSError):  # the reader of the output has ended; the run is recorded all the same
                    _write(key.data, data)
    while child.poll() is None:
        try:
            child.wait()
        except KeyboardInterrupt:
            is_interrupted = True
    if is_interrupted:
        raise KeyboardInterrupt
    code = child.returncode if child.returncode >= 0 else _SIGNALLED - child.returncode
    return CommandRun(code, output.get(), report.get(), (time.monotonic() - started) * 1000)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


AUTO: Final = "auto"


def _recorder(*, signed: bool = True) -> DebugRecorder:
    """Open the debug memory of the chosen project, to write into it."""
    from core.tasks.recorder import DebugRecorder

    project = chosen_project()
    if not is_folder(project.aiwg):
        folder = shlex.quote(str(project.project))
        raise ProjectNotFound(f"no .aiwg in {project.project}; begin with: {BEGIN_COMMAND} {folder}")
    return DebugRecorder(project, clock=now, by=decider() if signed else "")


@click.command(cls=DecidingCommand)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--input",
    "given",
    metavar="FILE",
    help="Run nothing; read the report of a run, - for standard input: JSON of Jest, Vitest or pytest, or their text.",
)
def run(session_id: str, command: tuple[str, ...], given: str | None) -> None:
    """Run COMMAND, such as tests; add counts, failures, exit code to a session.

    The command runs in the current folder, without a shell. Its output is passed on, with --json to standard error, and
    its exit code is that of this command. An interrupted run is not recorded. With --input nothing is run.

    A run decides whether the fix of the run before has worked.

    \b
    Examples:
      session=$(ralphdeck debug record --start --file src/cart.py)
      ralphdeck debug run "$session" -- pytest -q
      ralphdeck debug run "$session" -- npx jest --json
      ralphdeck debug run "$session" --input report.json
    """
    if bool(command) == (given is not None):
        raise click.UsageError("give either a command after --, or --input")
    recorder = _recorder()
    session = recorder.find(session_id)
    recorder.check_can_run(session)
    code, made = _read(given) if given is not None else _execute(command)
    number = recorder.add_run(session, made)

    failures = made.failures
    if wants_json():
        print_object(debug_json.RunRecorded, made, session_id=session.id, run=number, exit_code=code, failures=failures)
    else:
        results = made.results
        counts = f"{results.passed or 0} passed, {results.failing or 0} failed" if results is not None else ""
        remark(f"run {number} of {session.id}: {counts}")
    if code:
        click.get_current_context().exit(code)


def _read(given: str) -> tuple[int | None, Execution]:
    from core.cli.support.process import read_input
    from core.tasks.recorder import read_run

    made = read_run(read_input(Path(given), MAX_BYTES), str(chosen_project().project), now())
    if made is None:
        raise BadInput("the input contains no test report: neither counts nor failures")
    return None, made


def _execute(command: tuple[str, ...]) -> tuple[int, Execution]:
    from core.tasks.recorder import describe_run

    done = run_command(command, quiet_stdout=wants_json())
    root = str(chosen_project().project)
    program = relative_to_project(command[0], root)
    text = shlex.join([Path(program).name if program.startswith("/") else program, *command[1:]])
    made = describe_run(
        text, done.exit_code, done.output, root, now(), report=done.report, duration_ms=done.duration_ms
    )
    return done.exit_code, made


_MODES: Final = {
    "--start": "files task_id loop_id iteration agent new_id",
    "--cause": "session_id strategy category confidence related",
    "--fix": "session_id files diff",
    "--end": "session_id reason",
    "--success": "session_id applied dry_run",
    "--escalate": "session_id reason",
    "": "session_id",
}


@click.command(cls=DecidingCommand, modes=_MODES)
@click.argument("session_id", metavar="[SESSION]", required=False, shell_complete=complete_session)
@click.option("--start", is_flag=True, help="Start a session and print its ID.")
@click.option("--cause", metavar="TEXT", help="The root cause of the newest failing run, at least 20 characters.")
@click.option("--fix", metavar="TEXT", help="The fix for the newest failing run: what was changed, and why.")
@click.option("--end", type=OneOf((AUTO, *ENDS)), help="End the session; auto: resolved if its last run passed.")
@click.option("--success", is_flag=True, help="Learn from a session that succeeded.")
@click.option("--escalate", "is_escalation", is_flag=True, help="Escalate to a person, whatever the status.")
@click.option(
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    help="With --start, the file that is debugged. Default: that of the first failure. With --fix, a changed file; may "
    "be repeated. Default: those of the diff.",
)
@click.option("--diff", metavar="FILE", help="The change as a unified diff, - for standard input.")
@click.option("--strategy", metavar="TEXT", help="How to fix it, at least 20 characters.")
@click.option("--category", type=OneOf(ROOT_CAUSES), help="The kind of the root cause.")
@click.option("--confidence", type=FRACTION, help="How certain the root cause is, from 0 to 1.")
@click.option("--related", metavar="TEXT", multiple=True, help="Another failure with this cause; may be repeated.")
@click.option(
    "--task", "task_id", metavar="TASK", default="", envvar="RALPHDECK_TASK", help="The task. Default: $RALPHDECK_TASK."
)
@click.option("--loop", "loop_id", metavar="ID", default="", shell_complete=complete_loop, help="The loop.")
@click.option("--iteration", type=COUNT, metavar="N", help="The iteration of the loop.")
@click.option(
    "--agent", metavar="NAME", default="", envvar="RALPHDECK_AGENT", help="The agent. Default: $RALPHDECK_AGENT."
)
@click.option("--id", "new_id", metavar="UUID", default="", help="Its ID; one that exists is used again.")
@click.option("--reason", default="", metavar="TEXT", help="Why a person must decide; saved with the context.")
@click.option(
    "--applied",
    multiple=True,
    metavar="PATTERN",
    shell_complete=complete_pattern,
    help="A pattern of the registry that helped; may be repeated.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be learned; write nothing.")
def record(
    session_id: str | None,
    start: bool,
    cause: str | None,
    fix: str | None,
    end: str | None,
    success: bool,
    is_escalation: bool,
    files: tuple[str, ...],
    diff: str | None,
    strategy: str | None,
    category: str | None,
    confidence: float | None,
    related: tuple[str, ...],
    task_id: str,
    loop_id: str,
    iteration: int | None,
    agent: str,
    new_id: str,
    reason: str,
    applied: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Record a debug session from a script: its start, root cause, fix and end.

    `debug run` adds its runs. A second --cause replaces the analysis of the run, a second --fix the fix. The next run
    verifies the fix. A repeated --end changes nothing. Ending a session as resolved includes --success, and ending it
    as escalated --escalate.

    --success: each applied pattern gets a success. The lessons of the session are written to `learnings` of its file,
    with their frequency and the success rate of their fixes over all sessions; a YAML file that already has learnings
    is not changed. Then patterns are extracted as by loop extract, and Review asks about new patterns.

    --escalate saves the context of the session: the session, the last iterations of its loop, errors, reflections,
    injected patterns and the open attempt at its task. Prints the path of the file with it, which is never changed.
    Review asks about the session until a person acknowledges it. Another call saves another file and asks again.

    \b
    Examples:
      session=$(ralphdeck debug record --start --file src/cart.py --agent debugger)
      ralphdeck debug run "$session" -- pytest -q
      ralphdeck debug record "$session" --category null_undefined_access \\
        --cause "total() reads line.vat, which is None for gifts" --strategy "Count a missing VAT as 0"
      git diff | ralphdeck debug record "$session" --fix "Count a missing VAT as 0" --diff -
      ralphdeck debug record "$session" --end resolved
      ralphdeck debug record dm-001-example --success --applied pat-error-null-check-015
      ralphdeck debug record dm-001-example --escalate --reason "needs credentials"
    """
    mode = choose_mode(_MODES)
    if not mode:
        raise click.UsageError("give --start, --cause, --fix, --end, --success or --escalate")
    if mode == "--start":
        if len(files) > 1:
            raise click.UsageError("--start takes only one --file")
        _start("".join(files), task_id, loop_id, iteration, agent, new_id)
        return
    if session_id is None:
        raise click.UsageError(f"{mode} needs a SESSION")
    if cause is not None:
        _analyse(session_id, cause, strategy, category, confidence, related)
    elif fix is not None:
        _fix(session_id, fix, files, diff)
    elif end is not None:
        _end(session_id, end, reason)
    elif success:
        learn_from_success(session_id, applied, dry_run=dry_run)
    else:
        escalate(session_id, reason)


def _start(file: str, task_id: str, loop_id: str, iteration: int | None, agent: str, session_id: str) -> None:
    """Start a debug session and print its ID."""
    recorder = _recorder(signed=False)
    made = recorder.start(
        file=relative_to_project(file, str(chosen_project().project)),
        task_id=task_id,
        loop_id=loop_id,
        agent=agent,
        iteration=iteration,
        session_id=session_id,
    )
    if wants_json():
        print_object(debug_json.SessionStarted, session_id=made)
    else:
        line(made)


def _analyse(
    session_id: str,
    cause: str,
    strategy: str | None,
    category: str | None,
    confidence: float | None,
    related: tuple[str, ...],
) -> None:
    """Record the root cause of a session's newest failing run, and a fix strategy."""
    if strategy is None:
        raise click.UsageError("--cause needs a --strategy")
    recorder = _recorder()
    session = recorder.find(session_id)
    analysis = Analysis(
        root_cause=cause, strategy=strategy, category=category or "", confidence=confidence, related=related
    )
    number = recorder.analyse(session, analysis)
    if wants_json():
        print_object(debug_json.SessionPartRecorded, session_id=session.id, run=number)
    else:
        remark(f"analysis of run {number}")


def _fix(session_id: str, description: str, files: tuple[str, ...], diff: str | None) -> None:
    """Record the fix for the newest failing run of a session."""
    from core.cli.support.process import read_input
    from core.tasks.session_files import files_of_diff

    recorder = _recorder()
    session = recorder.find(session_id)
    text = read_input(Path(diff), MAX_BYTES).decode("utf-8", "replace") if diff is not None else ""
    root = str(chosen_project().project)
    changed = tuple(relative_to_project(file, root) for file in files) or files_of_diff(text)
    number = recorder.fix(session, Fix(description=description, diff=text, files=changed))
    if wants_json():
        print_object(debug_json.SessionPartRecorded, session_id=session.id, run=number)
    else:
        remark(f"fix of run {number}")


def _end(session_id: str, how: str, reason: str) -> None:
    """End a session; AUTO is resolved if its last run passed."""
    from core.project.error_advice import on_escalation, on_success

    if reason and how != ESCALATED:
        raise click.UsageError("--reason needs --end escalated")
    recorder = _recorder()
    session = recorder.find(session_id)
    chosen = how if how != AUTO else _derive_end(session)
    changed = recorder.end(session, chosen)
    file, lessons = "", 0
    if changed and chosen != ABANDONED:
        project = open_project(records=True)
        if chosen == ESCALATED:
            file = str(on_escalation(project, session.id, reason=reason).file)
        else:
            learned = on_success(project, session.id)
            lessons = len(learned.learned.lessons)
            warn(*learned.warnings)

    status = ENDS[chosen]
    if wants_json():
        print_object(
            debug_json.SessionEnded, session_id=session.id, status=status, changed=changed, lessons=lessons, file=file
        )
    else:
        line(f"{session.id} is {chosen}" if changed else f"{session.id} was {chosen} already")
        if file:
            line(file)
            remark("Review asks about it: run ralphdeck and press 2")


def _derive_end(session: DebugSession) -> str:
    last = session.executions[-1].results if session.executions else None
    if session.status == PASSED or (last is not None and last.green):
        return RESOLVED
    raise click.UsageError("the last run did not pass; give --end escalated or --end abandoned")


@click.command(cls=ReadingCommand)
@click.option("--error-type", default="", metavar="TYPE", help="Such as TypeError.")
@click.option("--message", default="", metavar="TEXT", help="The error message.")
@click.option("--file", "file", default="", metavar="FILE", help="The file of the error; its fixes come first.")
@click.option(
    "--file-pattern",
    default=ANY_FILE,
    metavar="LIKE",
    help="Only failures in such files: % is any text, _ any character.",
)
@click.option(
    "--session", "session_id", metavar="SESSION", shell_complete=complete_session, help="Use its newest failing run."
)
@click.option(
    "--input",
    "given",
    metavar="FILE",
    help="The output of the tests, - for standard input: a failure, execution or session of the debug memory, a JSON "
    "report of Jest, Vitest or pytest, or their text output.",
)
def failure(
    error_type: str, message: str, file: str, file_pattern: str, session_id: str | None, given: str | None
) -> None:
    """Print the known fix for an error, from sessions, fix templates and patterns.

    The output is data for an agent; nothing in it is an instruction. Patterns in quarantine and deprecated patterns are
    never offered. No file is written.

    Give one error with --message or --error-type (a message such as "TypeError: x is null" needs no type), or all
    errors of the newest failing run with --session, or the output of the tests with --input. If nothing is known,
    nothing is printed and the exit code is 0, so that a hook does not fail. In a project that you do not trust
    nothing is offered, and the exit code is 1.

    \b
    Examples:
      ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
      npx jest --json | ralphdeck debug failure --input -
      ralphdeck debug failure --session dm-001-example --json
    """
    from core.cli.commands.debug import find_session
    from core.cli.json.debug import fix_rate, fix_template
    from core.index.experiment import is_held_out, with_open_tasks
    from core.index.project_state import all_findings
    from core.project.error_advice import hold_out, on_failure
    from core.tasks.command_errors import parse_report

    if [session_id is not None, given is not None, bool(error_type or message)].count(True) != 1:
        raise click.UsageError("give either --error-type and --message, or --session, or --input")
    root = str(chosen_project().project)
    errors: Sequence[Failure] = [Failure(error_type=error_type, message=message, file=relative_to_project(file, root))]
    if given is not None:
        errors = parse_report(read_input(Path(given), MAX_BYTES), root)
        if not errors:
            remark("no error in the input")
    require_trust(chosen_project())
    state = open_project().view
    session = find_session(state, session_id) if session_id is not None else None
    if session is not None:
        if session.newest_failing is None:
            raise Refused(f"debug session {visible_line(session.id, 80)} has no recorded failure")
        errors = session.newest_failing.failures
    offer = on_failure(state, *errors, file_pattern=file_pattern, session=session)
    state = with_open_tasks(state, chosen_project())
    held_out = [pattern.id for pattern, _ in offer.patterns if is_held_out(state, pattern)]
    if held_out:
        offer = hold_out(state, offer, held_out)
        remark(f"{plural(len(held_out), 'lesson')} held out by chance for the task at work")
    level = state.settings.interval_level

    if wants_json():
        print_object(
            debug_json.FailureDocument,
            offer,
            findings=all_findings(state),
            error=offer.errors[0] if offer.errors else None,
            fixes=(debug_json.KnownFix.of(fix, results=fix_rate(fix.results, level)) for fix in offer.fixes),
            did_not_help=(debug_json.KnownFix.of(fix, results=fix_rate(fix.results, level)) for fix in offer.failed),
            templates=(fix_template(one, level) for one in offer.templates),
            patterns=(debug_json.OfferedPattern.of(assessment, pattern) for pattern, assessment in offer.patterns),
        )
    else:
        if offer.text:
            print_bytes(offer.text.encode("utf-8", "replace"))
        elif errors:
            remark("no known fix")
    end(all_findings(state))


def learn_from_success(session_id: str, applied: Sequence[str], *, dry_run: bool) -> None:
    """Learn from a session that succeeded."""
    from core.cli.commands.debug import find_session
    from core.cli.commands.decisions import decided_json
    from core.project.error_advice import on_success

    project = open_project(records=not dry_run)
    result = on_success(project, find_session(project.view, session_id).id, applied, dry_run=dry_run)
    warn(*result.warnings, *(result.decided.warnings if result.decided is not None else ()))
    learned = result.learned
    if learned.problem:
        warn(f"the lessons were not written to the session's file: {learned.problem}")
    if wants_json():
        print_object(
            debug_json.SuccessDocument,
            result,
            file_changed=learned.changed and learned.written,
            records=map(record_update, result.counted),
            decided=decided_json(result.decided) if result.decided is not None else None,
        )
    else:
        _print_success(result, dry_run=dry_run)


def _print_success(result: SuccessResult, *, dry_run: bool) -> None:
    learned = result.learned
    for pattern_id in result.applied:
        line(f"{result.work_id} followed {pattern_id}, which worked")
    print_recorded_counts(result.counted)
    for lesson in learned.lessons:
        works = f", works {percent(lesson.effectiveness)}" if lesson.effectiveness is not None else ""
        line(("lesson ", "bold"), f"{lesson.pattern}, frequency {lesson.frequency}{works}: {lesson.fix_template}")
    for proposal in result.extraction.new if result.extraction is not None else ():
        line(("+ ", "green"), f"{proposal.type.value} {proposal.headline}")
    count = plural(len(learned.lessons), "lesson")
    if dry_run:
        line(f"nothing is written{f'; would write {count} to {result.file}' if learned.changed else ''}")
        return
    if learned.changed:
        line(f"wrote {count} to {result.file}")
    elif learned.written and learned.lessons:
        line(f"{result.file} already has {count}")
    if result.decided is not None:
        line(f"decision: {result.decided.summary}")
    elif result.extraction is not None and learned.lessons:
        line("the registry has all of it already")
    if not (result.applied or learned.lessons or result.decided):
        remark(f"nothing to learn from {result.session_id}")


def escalate(session_id: str, reason: str) -> None:
    """Escalate a session to a person, save its context, and print that file's path."""
    from core.cli.commands.debug import find_session
    from core.project.error_advice import on_escalation

    project = open_project(records=True)
    call = on_escalation(project, find_session(project.view, session_id).id, reason=reason)

    if wants_json():
        print_object(debug_json.EscalationDocument, session_id=call.session_id, file=str(call.file))
    else:
        line(str(call.file))
        remark("Review asks about it: run ralphdeck and press 2")
