"""`ralphdeck debug start`, `run`, `analyse`, `fix` and `end`: record a debug session from a script."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import BadInput, ProjectNotFound
from core.base.paths import BEGIN_COMMAND, is_folder, relative_to_project
from core.cli.render.output import line, print_object, remark, wants_json, warn
from core.cli.support.id_completion import complete_loop, complete_session
from core.cli.support.options import COUNT, FRACTION, DecidingCommand, OneOf
from core.cli.support.project import chosen_project, decider, now, open_project
from core.files.file_reader import MAX_BYTES
from core.records.debug_sessions import ABANDONED, ENDS, ESCALATED, PASSED, RESOLVED, ROOT_CAUSES, Analysis, Fix

if TYPE_CHECKING:
    from core.records.debug_sessions import DebugSession, Execution
    from core.tasks.recorder import DebugRecorder

_session: Final = click.argument("session_id", metavar="SESSION", shell_complete=complete_session)


def _recorder(*, signed: bool = True) -> DebugRecorder:
    """Open the debug memory of the chosen project, to write into it."""
    from core.tasks.recorder import DebugRecorder

    project = chosen_project()
    if not is_folder(project.aiwg):
        folder = shlex.quote(str(project.project))
        raise ProjectNotFound(f"no .aiwg in {project.project}; begin with: {BEGIN_COMMAND} {folder}")
    return DebugRecorder(project, clock=now, by=decider() if signed else "")


@click.command(cls=DecidingCommand)
@click.option(
    "--file", metavar="FILE", default="", help="The source file that is debugged. Default: that of the first failure."
)
@click.option(
    "--task", "task_id", metavar="TASK", default="", envvar="RALPHDECK_TASK", help="The task. Default: $RALPHDECK_TASK."
)
@click.option("--loop", "loop_id", metavar="ID", default="", shell_complete=complete_loop, help="The loop.")
@click.option("--iteration", type=COUNT, metavar="N", help="The iteration of the loop.")
@click.option(
    "--agent", metavar="NAME", default="", envvar="RALPHDECK_AGENT", help="The agent. Default: $RALPHDECK_AGENT."
)
@click.option(
    "--id", "session_id", metavar="UUID", default="", help="ID of the session; one that exists is used again."
)
def start(file: str, task_id: str, loop_id: str, iteration: int | None, agent: str, session_id: str) -> None:
    """Start a debug session and print its ID.

    \b
    Examples:
      session=$(ralphdeck debug start --file src/cart.py --agent debugger)
      ralphdeck debug start --loop ralph-fix-auth-a1b2c3d4 --iteration 3
    """
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
        print_object("SessionStarted", session_id=made)
    else:
        line(made)


@click.command(cls=DecidingCommand)
@_session
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option(
    "--input",
    "given",
    metavar="FILE",
    help="Run nothing; read the report of a run, - for standard input: JSON of Jest, Vitest or pytest, or their text.",
)
def run(session_id: str, command: tuple[str, ...], given: str | None) -> None:
    """Run COMMAND, such as the tests, and add the run to a session: its counts, its failures, its exit code.

    The command runs in the current folder, without a shell. Its output is passed on, with --json to standard error, and
    its exit code is that of this command. An interrupted run is not recorded. With --input nothing is run.

    A run decides whether the fix of the run before has worked.

    \b
    Examples:
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
        print_object("RunRecorded", made, session_id=session.id, run=number, exit_code=code, failures=failures)
    else:
        results = made.results
        counts = f"{results.passed or 0} passed, {results.failing or 0} failed" if results is not None else ""
        remark(f"run {number} of {session.id}: {counts}")
    if code:
        click.get_current_context().exit(code)


def _read(given: str) -> tuple[int | None, Execution]:
    from core.cli.support.input_file import read_input
    from core.tasks.recorder import read_run

    made = read_run(read_input(Path(given), MAX_BYTES), str(chosen_project().project), now())
    if made is None:
        raise BadInput("the input contains no test report: neither counts nor failures")
    return None, made


def _execute(command: tuple[str, ...]) -> tuple[int, Execution]:
    from core.cli.support.command_run import run_command
    from core.tasks.recorder import describe_run

    done = run_command(command, quiet_stdout=wants_json())
    root = str(chosen_project().project)
    program = relative_to_project(command[0], root)
    text = shlex.join([Path(program).name if program.startswith("/") else program, *command[1:]])
    made = describe_run(
        text, done.exit_code, done.output, root, now(), report=done.report, duration_ms=done.duration_ms
    )
    return done.exit_code, made


@click.command(cls=DecidingCommand)
@_session
@click.option("--cause", metavar="TEXT", required=True, help="The root cause of the failures, at least 20 characters.")
@click.option("--strategy", metavar="TEXT", required=True, help="How to fix it, at least 20 characters.")
@click.option("--category", type=OneOf(ROOT_CAUSES), help="The kind of the root cause.")
@click.option("--confidence", type=FRACTION, help="How certain the cause is.")
@click.option("--related", metavar="TEXT", multiple=True, help="Another failure with this cause; may be repeated.")
def analyse(
    session_id: str, cause: str, strategy: str, category: str | None, confidence: float | None, related: tuple[str, ...]
) -> None:
    """Record the root cause of the newest failing run of a session, and the strategy to fix it.

    A second call replaces the analysis.

    \b
    Example:
      ralphdeck debug analyse "$session" --category null_undefined_access \\
        --cause "total() reads line.vat, which is None for gifts" --strategy "Count a missing VAT as 0"
    """
    recorder = _recorder()
    session = recorder.find(session_id)
    analysis = Analysis(
        root_cause=cause, strategy=strategy, category=category or "", confidence=confidence, related=related
    )
    number = recorder.analyse(session, analysis)
    if wants_json():
        print_object("SessionPartRecorded", session_id=session.id, run=number)
    else:
        remark(f"analysis of run {number}")


@click.command(cls=DecidingCommand)
@_session
@click.option("--description", metavar="TEXT", required=True, help="What was changed, and why.")
@click.option(
    "--file",
    "files",
    metavar="FILE",
    multiple=True,
    help="A changed file; may be repeated. Default: those of the diff.",
)
@click.option("--diff", metavar="FILE", help="The change as a unified diff, - for standard input.")
def fix(session_id: str, description: str, files: tuple[str, ...], diff: str | None) -> None:
    """Record the fix for the newest failing run of a session. The next run verifies it.

    A second call replaces the fix.

    \b
    Examples:
      git diff | ralphdeck debug fix "$session" --description "Count a missing VAT as 0" --diff -
      ralphdeck debug fix "$session" --description "Count a missing VAT as 0" --file src/cart.py
    """
    from core.cli.support.input_file import read_input
    from core.tasks.session_files import files_of_diff

    recorder = _recorder()
    session = recorder.find(session_id)
    text = read_input(Path(diff), MAX_BYTES).decode("utf-8", "replace") if diff is not None else ""
    root = str(chosen_project().project)
    changed = tuple(relative_to_project(file, root) for file in files) or files_of_diff(text)
    number = recorder.fix(session, Fix(description=description, diff=text, files=changed))
    if wants_json():
        print_object("SessionPartRecorded", session_id=session.id, run=number)
    else:
        remark(f"fix of run {number}")


@click.command(cls=DecidingCommand)
@_session
@click.option("--resolved", "how", flag_value=RESOLVED, help="The last run passed.")
@click.option("--escalated", "how", flag_value=ESCALATED, help="A person must decide, as by debug escalate.")
@click.option("--abandoned", "how", flag_value=ABANDONED, help="The work is given up; the session failed.")
@click.option("--reason", default="", metavar="TEXT", help="Why a person must decide; only with --escalated.")
def end(session_id: str, how: str | None, reason: str) -> None:
    """End a session. Without a flag it is resolved if its last run passed; otherwise a flag is needed.

    A resolved session is handed to debug success, and an escalated one to debug escalate. A
    repeated call changes nothing.

    \b
    Examples:
      ralphdeck debug end "$session" --resolved
      ralphdeck debug end "$session" --escalated --reason "needs credentials"
    """
    from core.project.debug_hooks import on_escalation, on_success

    if reason and how != ESCALATED:
        raise click.UsageError("--reason needs --escalated")
    recorder = _recorder()
    session = recorder.find(session_id)
    chosen = how or _derive_end(session)
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
        print_object("SessionEnded", session_id=session.id, status=status, changed=changed, lessons=lessons, file=file)
    else:
        line(f"{session.id} is {chosen}" if changed else f"{session.id} was {chosen} already")
        if file:
            line(file)
            remark("Review asks about it: run ralphdeck and press 2")


def _derive_end(session: DebugSession) -> str:
    last = session.executions[-1].results if session.executions else None
    if session.status == PASSED or (last is not None and last.green):
        return RESOLVED
    raise click.UsageError("the last run did not pass; give --escalated or --abandoned")
