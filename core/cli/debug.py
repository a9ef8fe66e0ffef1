"""`ralphdeck debug`: `sessions`; the other commands of the group are loaded when they are called."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import UnknownRecord
from core.base.text import visible_line
from core.cli.debug_shapes import causes_of, failing, session_json
from core.cli.lazy import LazyCommands
from core.cli.options import Words, project_option, reading_options
from core.cli.output import Column, end, findings_json, minute, print_json, print_table, remark
from core.cli.project import chosen_project, open_deck
from core.cli.shapes import json_help
from core.debug_memory.escalation_status import find_escalation
from core.debug_memory.index import ANY_FILE, CAUSE, STATUS, like, newest_first
from core.records.debug_sessions import ESCALATED, STATUSES, DebugSession

if TYPE_CHECKING:
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState

COMMANDS: Final = {
    "show": ("core.cli.debug_show:show", "Show one debug session with all that it tells."),
    "similar": ("core.cli.debug_queries:similar", "List the sessions in which an error of a type came up."),
    "templates": ("core.cli.debug_queries:templates", "List the fix templates for a root cause."),
    "escalations": ("core.cli.debug_queries:escalations", "List the sessions that wait for a person."),
    "causes": ("core.cli.debug_queries:causes", "List the most frequent root causes, and what fails again."),
    "failure": ("core.cli.debug_hooks:failure", "Print the known fix for an error that has just come up."),
    "success": ("core.cli.debug_hooks:success", "Learn from a session that has succeeded."),
    "escalate": ("core.cli.debug_hooks:escalate", "Keep all that surrounds a session that a person must look at."),
    "retain": ("core.cli.debug_archive:retain", "Archive the sessions whose time is over."),
    "archived": ("core.cli.debug_archive:archived", "List the archived sessions."),
    "restore": ("core.cli.debug_archive:restore", "Bring a session back from the archive."),
}
"""Where each further command is, and its one line of help."""
STATUS_COLOURS: Final = {"passed": "green", "failed": "red", "escalated": "yellow", "in progress": "cyan"}


@click.group(cls=LazyCommands, places=COMMANDS)
@project_option
def debug() -> None:
    """What agents ran, what failed, why, and what fixed it: the debug memory, and the hooks that agents call.

    \b
    Examples:
      ralphdeck debug sessions --status failed,escalated
      ralphdeck debug failure --error-type TypeError --message "Cannot read property 'id' of null"
      ralphdeck debug causes
    """


@debug.command(epilog=json_help("debug sessions"))
@click.option(
    "--status", type=Words([status.replace("_", "-") for status in STATUSES]), help="Only sessions with such a status."
)
@click.option("--file", "file_pattern", metavar="LIKE", help="Only on such files: % any text, _ any character.")
@click.option("--category", metavar="WORD", help="Only with this root cause, such as null_undefined_access.")
@reading_options
def sessions(
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
    fits = like(ANY_FILE if file_pattern is None else file_pattern)
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
        print_json({"sessions": shapes, "findings": findings_json(view.findings)})
    else:
        _print_sessions(found, view.snapshot)
    end(view.findings, strict=strict)


def _print_sessions(found: Sequence[DebugSession], snapshot: Snapshot) -> None:
    columns = (
        Column("SESSION"),
        Column("STATUS", colours=STATUS_COLOURS),
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
        status_word(session, snapshot),
        minute(session.changed_at),
        str(len(session.executions)),
        "" if broken is None else str(broken),
        ", ".join(causes_of(session)),
        session.file_path,
    )


def status_word(session: DebugSession, snapshot: Snapshot) -> str:
    """What a person should know of how it stands, in words."""
    return (session.status if find_escalation(session, snapshot) is None else ESCALATED).replace("_", " ")
