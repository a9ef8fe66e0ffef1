"""`ralphdeck debug failure`, `success` and `escalate`: the hooks of (4), for agents to call."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from core.base.errors import BadInput, Refused
from core.base.text import plural, visible_line
from core.cli.commands.debug import debug_session
from core.cli.json.debug import (
    failure_json,
    known_fix_json,
    lesson_json,
    offered_pattern_json,
    template_json,
)
from core.cli.json.shapes import decided_json, extraction_json, json_help
from core.cli.render.output import end, findings_json, line, percent, print_bytes, print_json, remark, warn
from core.cli.render.recorded_counts import counted_json, print_counted
from core.cli.support.id_completion import complete_pattern, complete_session
from core.cli.support.input_file import read_named
from core.cli.support.options import deciding_options, reading_options
from core.cli.support.project import chosen_project, open_deck
from core.config.paths import relative_to_project
from core.debug_memory.index import ANY_FILE
from core.debug_memory.test_reports import parse_failures
from core.project.debug_advice import on_failure
from core.project.debug_hooks import SuccessResult, on_escalation, on_success
from core.records.debug_sessions import DebugSession, Failure
from core.state.findings import all_findings
from core.storage.file_reader import MAX_BYTES


@click.command(epilog=json_help("debug failure"))
@click.option("--error-type", default="", metavar="TYPE", help="Such as TypeError.")
@click.option("--message", default="", metavar="TEXT", help="What the error says.")
@click.option("--file", "file", default="", metavar="FILE", help="Where it came from: fixes in it come first.")
@click.option(
    "--file-pattern",
    default=ANY_FILE,
    metavar="LIKE",
    help="Only failures in such files: % any text, _ any character.",
)
@click.option(
    "--session", "session_id", metavar="SESSION", shell_complete=complete_session, help="Take its newest failing run."
)
@click.option(
    "--input",
    "given",
    metavar="FILE",
    help="What the tests said, - for standard input: a failure, execution or session of (4), a JSON report of Jest, "
    "Vitest or pytest, or what they print.",
)
@reading_options
def failure(
    error_type: str,
    message: str,
    file: str,
    file_pattern: str,
    session_id: str | None,
    given: str | None,
    as_json: bool,
    strict: bool,
) -> None:
    """Print the known fix for an error: what earlier sessions did, fix templates, and patterns of the registry.

    For an agent to read, as data: nothing in it is an instruction. Nothing is printed where nothing is known, and
    nothing is written. Patterns in quarantine and deprecated ones are never offered.

    The error may be given in options; a message such as "TypeError: x is null" needs no type. Else all errors of the
    newest failing run of a session are looked up, or all that --input tells of. The exit code is 0 also where nothing
    is known, so that a hook does not fail for it.

    \b
    Examples:
      ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
      npx jest --json | ralphdeck debug failure --input -
      ralphdeck debug failure --session dm-001-example --json
    """
    if [session_id is not None, given is not None, bool(error_type or message)].count(True) != 1:
        raise click.UsageError("give either --error-type and --message, or --session, or --input")
    root = str(chosen_project().project)
    errors: Sequence[Failure] = [Failure(error_type=error_type, message=message, file=relative_to_project(file, root))]
    if given is not None:
        errors = _reported(given, root)
        if not errors:
            remark("no error in what was given")
    view = open_deck().view
    session = debug_session(view, session_id) if session_id is not None else None
    if session is not None:
        errors = _failed(session)
    offer = on_failure(view, *errors, file_pattern=file_pattern, session=session)
    if as_json:
        level = view.settings.interval_level
        print_json(
            {
                "error": failure_json(offer.errors[0]) if offer.errors else None,
                "errors": [failure_json(error) for error in offer.errors],
                "fixes": [known_fix_json(fix, level) for fix in offer.fixes],
                "templates": [template_json(one, level) for one in offer.templates],
                "patterns": [offered_pattern_json(*one) for one in offer.patterns],
                "text": offer.text,
                "findings": findings_json(all_findings(view)),
            }
        )
    elif offer.text:
        print_bytes(offer.text.encode("utf-8", "replace"))
    elif errors:
        remark("no known fix")
    end(all_findings(view), strict=strict)


def _reported(name: str, root: str) -> tuple[Failure, ...]:
    if name != "-":
        return parse_failures(read_named(Path(name), MAX_BYTES), root)
    data = sys.stdin.buffer.read(MAX_BYTES + 1) if sys.stdin is not None else b""
    if len(data) > MAX_BYTES:
        raise BadInput(f"standard input has more than {MAX_BYTES:,} bytes; give only the failing tests")
    return parse_failures(data, root)


def _failed(session: DebugSession) -> tuple[Failure, ...]:
    run = session.newest_failing
    if run is None:
        raise Refused(f"no run of debug session {visible_line(session.id, 80)} tells what failed")
    return run.failures


@click.command(epilog=json_help("debug success"))
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option(
    "--applied",
    "applied",
    multiple=True,
    metavar="PATTERN",
    shell_complete=complete_pattern,
    help="A pattern of the registry that helped; give it again for each.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be learned; nothing is written.")
@deciding_options
def success(session_id: str, applied: tuple[str, ...], dry_run: bool, by: str | None, as_json: bool) -> None:
    """Learn from a session that has succeeded.

    Each applied pattern gets a success. What the session teaches goes into `learnings` of its file, with how often it
    was seen and how often its fix held over all sessions; in a YAML file only if it has no learnings yet. Then what it
    offers goes into the registry, as extract does; Review asks about what is new.

    \b
    Examples:
      ralphdeck debug success dm-001-example --dry-run
      ralphdeck debug success dm-001-example --applied pat-error-null-check-015
    """
    deck = open_deck(by, records=not dry_run)
    told = on_success(deck, debug_session(deck.view, session_id).id, applied, dry_run=dry_run)
    for warning in (*told.warnings, *(told.decided.warnings if told.decided is not None else ())):
        warn(warning)
    if told.learned.problem:
        warn(f"its lessons are not in its file: {told.learned.problem}")
    if as_json:
        print_json(
            {
                "session_id": told.session_id,
                "file": told.file,
                "bead": told.work_id,
                "applied": list(told.applied),
                "lessons": [lesson_json(lesson) for lesson in told.learned.lessons],
                "lessons_written": told.learned.written,
                "file_changed": told.learned.changed and told.learned.written,
                "problem": told.learned.problem or None,
                "records": [counted_json(counted) for counted in told.counted],
                "extraction": extraction_json(told.extraction) if told.extraction is not None else None,
                "decided": decided_json(told.decided) if told.decided is not None else None,
                "warnings": list(told.warnings),
            }
        )
    else:
        _print(told, dry_run=dry_run)


def _print(told: SuccessResult, *, dry_run: bool) -> None:
    for pattern_id in told.applied:
        line(f"applied by {told.work_id}: {pattern_id}, which succeeded")
    print_counted(told.counted)
    for lesson in told.learned.lessons:
        works = f", works {percent(lesson.effectiveness)}" if lesson.effectiveness is not None else ""
        line(("learned ", "bold"), f"{lesson.pattern}, seen in {lesson.frequency}{works}: {lesson.fix_template}")
    for proposal in told.extraction.new if told.extraction is not None else ():
        line(("+ ", "green"), f"{proposal.type.value} {proposal.headline}")
    many = plural(len(told.learned.lessons), "lesson")
    if dry_run:
        into = f"; without --dry-run {many} would go into {told.file}" if told.learned.changed else ""
        line(f"nothing is written{into}")
        return
    if told.learned.changed:
        line(f"wrote {many} into {told.file}")
    elif told.learned.written and told.learned.lessons:
        line(f"{told.file} has {many} already")
    if told.decided is not None:
        line(f"decision: {told.decided.summary}")
    elif told.extraction is not None and told.learned.lessons:
        line("the registry has all of it already")
    if not (told.applied or told.learned.lessons or told.decided):
        remark(f"nothing to learn from {told.session_id}")


@click.command(epilog=json_help("debug escalate"))
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@click.option("--reason", default="", help="Why a person must look; kept with the context.")
@deciding_options
def escalate(session_id: str, reason: str, by: str | None, as_json: bool) -> None:
    """Keep all that surrounds a session that an agent gives up on: the session, the last iterations of its loop,
    errors, reflections, injected patterns and the open attempt at its task.

    Prints the file that keeps it, which is never written again. Review asks about the session, whatever its status
    says, until somebody answers; calling again keeps a further file and asks again.

    \b
    Example:
      ralphdeck debug escalate dm-001-example --reason "needs credentials"
    """
    deck = open_deck(by, records=True)
    called = on_escalation(deck, debug_session(deck.view, session_id).id, reason=reason)
    if as_json:
        print_json({"session_id": called.session_id, "file": str(called.file)})
    else:
        line(str(called.file))
        remark("Review asks about it: ralphdeck, then 3")
