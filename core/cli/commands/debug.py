"""`ralphdeck debug`: `sessions`; the other commands of the group are loaded when they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.cli.json.debug import causes_of, failing, session_details_json, session_json
from core.cli.json.shapes import json_help
from core.cli.render.document import print_document
from core.cli.render.output import Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.support.id_completion import complete_session
from core.cli.support.options import Words, reading_options
from core.cli.support.project import chosen_project, open_deck
from core.debug_memory.index import ANY_FILE, CAUSE, STATUS, compile_like, newest_first
from core.documents.debug_sessions import session_document
from core.documents.signs import session_status_sign
from core.records.debug_sessions import ESCALATED, STATUSES, DebugSession
from core.state.findings import all_findings

_STATUS_COLOURS: Final = {"passed": "green", "failed": "red", "escalated": "yellow", "in progress": "cyan"}

if TYPE_CHECKING:
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState


@click.command("list", epilog=json_help("debug list"))
@click.option(
    "--status", type=Words([status.replace("_", "-") for status in STATUSES]), help="Only sessions with such a status."
)
@click.option("--file", "file_pattern", metavar="LIKE", help="Only on such files: % any text, _ any character.")
@click.option("--category", metavar="WORD", help="Only with this root cause, such as null_undefined_access.")
@reading_options
def list_sessions(
    status: tuple[str, ...] | None, file_pattern: str | None, category: str | None, as_json: bool, strict: bool
) -> None:
    """List the debug sessions, newest first.

    \b
    Examples:
      ralphdeck debug sessions --status escalated
      ralphdeck debug sessions --file "src/auth/%" --category null_undefined_access --json
    """
    view = open_deck().view
    index = view.debug
    found = set(index.sessions)
    if status is not None:
        words = {word.replace("-", "_") for word in status}
        waiting = {one.session.id for one in view.escalations()} if ESCALATED in words else set()
        found &= waiting.union(*(index.keys[STATUS].get(word, ()) for word in words))
    if category is not None:
        found &= set(index.keys[CAUSE].get(cause_word(category), ()))
    fits = compile_like(ANY_FILE if file_pattern is None else file_pattern)
    wanted = (session for session in map(index.sessions.__getitem__, found) if fits(session.file_path))
    tell_sessions(view, sorted(wanted, key=newest_first), as_json=as_json, strict=strict)


def debug_session(view: ProjectState, name: str) -> DebugSession:
    """The debug session that a name means.

    Raises:
        UnknownRecord: There is none, or several; where it is archived, that is told.
    """
    try:
        return view.debug_session(name)
    except UnknownRecord:
        from core.debug_memory.archive import DebugArchive

        archived = DebugArchive(chosen_project()).find(name)
        if archived is None or any(id.startswith(name) for id in view.snapshot.debug_sessions):
            raise
        shown, file = visible_line(archived.session.id, 80), visible_line(archived.file, 160)
        bring = f"bring it back with: ralphdeck debug restore {shown}"
        raise UnknownRecord(f"debug session {shown!r} is archived in {file}; {bring}") from None


def cause_word(category: str) -> str:
    """A root cause as the files are read: `Logic error` is `logic_error`."""
    return category.strip().casefold().replace("-", "_").replace(" ", "_")


def tell_sessions(view: ProjectState, found: Sequence[DebugSession], *, as_json: bool, strict: bool) -> None:
    """Print sessions as a table or as JSON, and end the command."""
    if as_json:
        shapes = [session_json(session, view.snapshot) for session in found]
        print_json({"sessions": shapes, "findings": findings_json(all_findings(view))})
    else:
        _print_sessions(found, view.snapshot)
    end(all_findings(view), strict=strict)


def _print_sessions(found: Sequence[DebugSession], snapshot: Snapshot) -> None:
    columns = (
        Column("SESSION"),
        Column("STATUS", colours=_STATUS_COLOURS),
        Column("CHANGED"),
        Column("RUNS", right=True),
        Column("FAILING", right=True),
        Column("ROOT CAUSE", free=True),
        Column("FILE", free=True),
    )
    print_table(columns, (_cells(session, snapshot) for session in found))
    if not found:
        remark("no debug sessions")


def _cells(session: DebugSession, snapshot: Snapshot) -> tuple[str, ...]:
    broken = failing(session)
    return (
        session.id,
        session_status_sign(session, snapshot).text if session.status else "",
        minute(session.changed_at),
        str(len(session.executions)),
        "" if broken is None else str(broken),
        ", ".join(causes_of(session)),
        session.file_path,
    )


@click.command(epilog=json_help("debug show"))
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
@reading_options
def show(session_id: str, as_json: bool, strict: bool) -> None:
    """Show one debug session: its runs, what failed and why, what was changed, and what it learned.

    \b
    Examples:
      ralphdeck debug show dm-001-example
      ralphdeck debug show dm-001-example --json | jq .session.executions
    """
    view = open_deck().view
    session = debug_session(view, session_id)
    findings = tuple(finding for finding in all_findings(view) if finding.file == session.file)
    if as_json:
        details = session_details_json(session, view.snapshot, view.debug.fix_results, view.settings.interval_level)
        print_json({"session": details, "findings": findings_json(findings)})
    else:
        print_document(session_document(view, session))
    end(findings, strict=strict)
