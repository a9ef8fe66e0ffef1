"""`ralphdeck debug failure`, and what a session that ended teaches: hooks for agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.base.errors import Refused
from core.base.paths import relative_to_project
from core.base.text import plural, visible_line
from core.cli.json import debug as debug_json
from core.cli.json.loops import record_update
from core.cli.render.output import end, line, percent, print_bytes, print_object, remark, wants_json, warn
from core.cli.support.id_completion import complete_session
from core.cli.support.input_file import read_input
from core.cli.support.options import ReadingCommand
from core.cli.support.project import chosen_project, open_project
from core.cli.support.work_options import print_recorded_counts
from core.files.file_reader import MAX_BYTES
from core.records.debug_sessions import Failure
from core.tasks.debug_index import ANY_FILE
from core.trust.projects import require_trust

if TYPE_CHECKING:
    from core.project.debug_hooks import SuccessResult


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
    """Print the known fix for an error: what earlier sessions did, fix templates, and patterns of the registry.

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
    from core.index.findings import all_findings
    from core.project.debug_hooks import hold_out, on_failure
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
    from core.project.debug_hooks import on_success

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
        _print(result, dry_run=dry_run)


def _print(result: SuccessResult, *, dry_run: bool) -> None:
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
    """Escalate a session to a person, and save its context; prints the path of the file with it."""
    from core.cli.commands.debug import find_session
    from core.project.debug_hooks import on_escalation

    project = open_project(records=True)
    call = on_escalation(project, find_session(project.view, session_id).id, reason=reason)

    if wants_json():
        print_object(debug_json.EscalationDocument, session_id=call.session_id, file=str(call.file))
    else:
        line(str(call.file))
        remark("Review asks about it: run ralphdeck and press 2")
