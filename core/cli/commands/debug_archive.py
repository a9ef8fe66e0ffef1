"""`ralphdeck debug archive`, and the list of archived sessions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from core.base.text import plural, visible_line
from core.cli.json import debug as debug_json
from core.cli.render.output import (
    Column,
    day,
    end,
    id_column,
    line,
    print_object,
    print_table,
    remark,
    wants_json,
    warn,
)
from core.cli.support.options import DecidingCommand, choose_mode
from core.cli.support.project import chosen_project, decider, now, read_configuration
from core.records.debug_sessions import IN_PROGRESS

if TYPE_CHECKING:
    from core.tasks.archive import RetentionPeriod, RetentionPlan


@click.command(cls=DecidingCommand)
@click.option("--dry-run", is_flag=True, help="Print when each file expires, and archive nothing.")
@click.option("--restore", metavar="SESSION", help="Restore the file of this session; its retention time starts again.")
def archive(dry_run: bool, restore: str | None) -> None:
    """Archive the debug sessions whose retention time is over: 30 days after the last change, 60 days if the session
    has lessons, 90 days if it was escalated (settings `debug_memory`).

    The longest of these times applies; a session in progress is never archived. When all sessions of a file have
    expired, it is moved to archive/YEAR-MONTH/ of its debug-memory folder. Nothing is deleted:
    --restore moves a file back, and debug list --archived lists them. SESSION is the ID of the session or a prefix of
    it. If several files have the session, the file that was archived last is restored, and the others are listed.

    \b
    Examples:
      ralphdeck debug archive --dry-run
      ralphdeck debug archive
      ralphdeck debug archive --restore dm-001-example
    """
    from core.tasks.archive import DebugArchive

    if choose_mode({"--restore": "", "": "dry_run"}):
        _restore(restore or "")
        return
    settings, at = read_configuration().settings.debug_memory, now()
    archive = DebugArchive(chosen_project(), by=decider())
    if dry_run:
        plan = archive.plan(settings)
        files = (debug_json.RetentionFile.of(one, due=one.is_due(at)) for one in plan)
        if wants_json():
            print_object(debug_json.RetentionDocument, plan=files)
        else:
            _print_plan(plan, at)
        return
    moved, warnings = archive.archive_expired(settings, at)
    warn(*warnings)

    if wants_json():
        print_object(debug_json.ArchiveResult, moved=moved, warnings=warnings)
    else:
        for one in moved:
            line(f"archived {plural(len(one.sessions), 'session')}: {one.source} → {one.target}")
        if not moved and not warnings:
            remark("no debug session has expired")
        _remark_partly_due(archive.plan(settings), at)


def _print_plan(plan: Sequence[RetentionPlan], at: datetime) -> None:
    rows = [(one, period) for one in plan for period in one.periods]
    columns = (
        id_column("SESSION", lambda row: row[1].session_id),
        Column("STATUS", lambda row: row[1].status, expendable=1),
        Column("KEPT UNTIL", lambda row: "due" if row[1].is_expired(at) else day(row[1].until) or "always"),
        Column("RULE", lambda row: _rule(row[1]), expendable=2),
        Column("FILE", lambda row: row[0].file, free=True),
    )
    print_table(columns, rows)
    due = sum(one.is_due(at) for one in plan)
    remark(f"{plural(due, 'file')} would be archived" if due else "no debug session has expired")
    _remark_partly_due(plan, at)


def _remark_partly_due(plan: Sequence[RetentionPlan], at: datetime) -> None:
    for one in plan:
        if one.expired(at) and not one.is_due(at):
            count = len(one.expired(at))
            are = "is" if count == 1 else "are"
            remark(f"{one.file} stays: {count} of its {len(one.periods)} sessions {are} due, and files move as a whole")


def _rule(period: RetentionPeriod) -> str:
    from core.tasks.archive import UNDATED

    names = {IN_PROGRESS: "in progress", UNDATED: "not dated"}
    return names.get(period.rule, f"{period.rule} ({plural(period.days or 0, 'day')})")


def list_archived() -> None:
    """List the archived debug sessions, last archived first."""
    from core.tasks.archive import DebugArchive

    found = DebugArchive(chosen_project()).list_sessions()
    columns = (
        id_column("SESSION", lambda item: item.session.id),
        Column("STATUS", lambda item: item.session.status),
        Column("ARCHIVED", lambda item: day(item.at)),
        Column("BY", lambda item: item.by, expendable=1),
        Column("FILE", lambda item: item.file, free=True),
    )
    if wants_json():
        print_object(debug_json.ArchivedSessionList, findings=(), archived=found)
    else:
        print_table(columns, found, "no archived debug sessions")
    end(())


def _restore(session_id: str) -> None:
    """Restore the file of an archived session."""
    from core.tasks.archive import DebugArchive

    restored = DebugArchive(chosen_project(), by=decider()).restore(session_id, now())

    if wants_json():
        print_object(debug_json.RestoreResult, moved=[restored.moved], others=restored.others)
    else:
        line(f"restored {plural(len(restored.moved.sessions), 'session')}: {restored.moved.target}")
        for other in restored.others:
            is_blocked = other in restored.taken
            how = "another file has its place: move it by hand" if is_blocked else "restore again to get that file too"
            remark(f"{visible_line(restored.session_id, 80)} is in {other} too, which stays archived; {how}")
