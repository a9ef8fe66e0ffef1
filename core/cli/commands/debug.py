"""`ralphdeck debug list` and `show`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.cli.json import objects
from core.cli.json.debug import causes_of, failing_tests, session_details, sessions_document
from core.cli.render.document import print_document
from core.cli.render.output import Column, id_column, minute, print_table, respond
from core.cli.support.id_completion import complete_session
from core.cli.support.options import ReadingCommand, Words
from core.cli.support.project import chosen_project, open_project
from core.debug_memory.index import ANY_FILE, CAUSE, STATUS, compile_like, newest_first
from core.documents.debug_sessions import session_document
from core.documents.signs import session_status_sign
from core.records.debug_sessions import ESCALATED, STATUSES, DebugSession
from core.state.findings import all_findings

if TYPE_CHECKING:
    from core.state.project_state import ProjectState

STATUS_COLOURS: Final = {"passed": "green", "failed": "red", "escalated": "yellow", "in progress": "cyan"}


@click.command("list", cls=ReadingCommand)
@click.option("--status", type=Words([one.replace("_", "-") for one in STATUSES]), help="Only with these states.")
@click.option("--file", "file_pattern", metavar="LIKE", help="Only on these files: % is any text, _ any character.")
@click.option("--category", metavar="WORD", help="Only with this root cause, such as null_undefined_access.")
def list_sessions(status: tuple[str, ...] | None, file_pattern: str | None, category: str | None) -> None:
    """List the debug sessions, newest first.

    \b
    Examples:
      ralphdeck debug list --status escalated
      ralphdeck debug list --file "src/auth/%" --category null_undefined_access --json
    """
    state = open_project().view
    index = state.debug
    found = set(index.sessions)
    if status is not None:
        words = {word.replace("-", "_") for word in status}
        escalated = {one.session.id for one in state.escalations()} if ESCALATED in words else set()
        found &= escalated.union(*(index.keys[STATUS].get(word, ()) for word in words))
    if category is not None:
        found &= set(index.keys[CAUSE].get(normalize_cause(category), ()))
    matches = compile_like(ANY_FILE if file_pattern is None else file_pattern)
    chosen = (session for session in map(index.sessions.__getitem__, found) if matches(session.file_path))
    print_sessions(state, sorted(chosen, key=newest_first))


def find_session(state: ProjectState, name: str) -> DebugSession:
    """Find a debug session.

    Raises:
        UnknownRecord: There is none, or there are several; the message names the file of an archived one.
    """
    try:
        return state.debug_session(name)
    except UnknownRecord:
        from core.debug_memory.archive import DebugArchive

        archived = DebugArchive(chosen_project()).find(name)
        if archived is None or any(id.startswith(name) for id in state.snapshot.debug_sessions):
            raise
        shown, file = visible_line(archived.session.id, 80), visible_line(archived.file, 160)
        hint = f"restore it with: ralphdeck debug restore {shown}"
        raise UnknownRecord(f"debug session {shown!r} is archived in {file}; {hint}") from None


def normalize_cause(category: str) -> str:
    """A root cause as it is indexed: `Logic error` is `logic_error`."""
    return category.strip().casefold().replace("-", "_").replace(" ", "_")


def print_sessions(state: ProjectState, found: Sequence[DebugSession]) -> None:
    """Print sessions as a table or as JSON, and end the command."""

    def status(session: DebugSession) -> str:
        return session_status_sign(session, state.snapshot).text if session.status else ""

    columns = (
        id_column("SESSION", lambda session: session.id),
        Column("STATUS", status, colours=STATUS_COLOURS),
        Column("CHANGED", lambda session: minute(session.changed_at), expendable=1),
        Column("RUNS", lambda session: str(len(session.executions)), right=True, expendable=3),
        Column("FAILING", _failing, right=True, expendable=2),
        Column("ROOT CAUSE", lambda session: ", ".join(causes_of(session)), free=True, expendable=4),
        Column("FILE", lambda session: session.file_path, free=True),
    )
    respond(
        lambda: sessions_document(found, state.snapshot, all_findings(state)),
        lambda: print_table(columns, found, "no debug sessions"),
        all_findings(state),
    )


def _failing(session: DebugSession) -> str:
    count = failing_tests(session)
    return "" if count is None else str(count)


@click.command(cls=ReadingCommand)
@click.argument("session_id", metavar="SESSION", shell_complete=complete_session)
def show(session_id: str) -> None:
    """Show one debug session: its runs, failures with their causes, fixes and lessons.

    \b
    Examples:
      ralphdeck debug show dm-001-example
      ralphdeck debug show dm-001-example --json | jq .session.executions
    """
    state = open_project().view
    session = find_session(state, session_id)
    findings = tuple(finding for finding in all_findings(state) if finding.file == session.file)
    level = state.settings.interval_level
    respond(
        lambda: objects.SessionDocument.of(
            session=session_details(session, state.snapshot, state.debug.fix_results, level), findings=findings
        ),
        lambda: print_document(session_document(state, session)),
        findings,
    )
