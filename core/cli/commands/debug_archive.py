"""`ralphdeck debug retain`, `archived` and `restore`: how long the debug memory keeps sessions (4) `retention`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from core.base.text import plural, visible_line
from core.cli.json.debug import archived_session_json, kept_json, moved_json
from core.cli.json.shapes import json_help
from core.cli.render.output import Column, day, end, findings_json, line, print_json, print_table, remark, warn
from core.cli.support.options import deciding_options, reading_options
from core.cli.support.project import chosen_project, decider, now, read_configuration
from core.debug_memory.archive import DebugArchive
from core.debug_memory.retention import UNDATED, RetentionPeriod, RetentionPlan
from core.records.debug_sessions import IN_PROGRESS
from core.records.times import day_of


@click.command("archive-expired", epilog=json_help("debug archive-expired"))
@click.option("--dry-run", is_flag=True, help="Print how long each file is kept, and archive nothing.")
@deciding_options
def archive_expired(dry_run: bool, by: str | None, as_json: bool) -> None:
    """Archive the debug sessions whose time is over: 30 days after the last change, 60 if the session has identified
    a pattern, 90 if it was escalated (settings `debug_memory`).

    Of several terms the longest holds; a session in progress stays. A file goes to archive/YEAR-MONTH/ of its
    debug-memory folder when all its sessions are due; nothing is deleted: debug restore.

    \b
    Examples:
      ralphdeck debug retain --dry-run
      ralphdeck debug retain
    """
    settings, at = read_configuration().settings.debug_memory, now()
    archive = DebugArchive(chosen_project(), by=by or decider())
    if dry_run:
        _print_plan(archive.plan(settings), at, as_json)
        return
    moved, warnings = archive.archive_expired(settings, at)
    for warning in warnings:
        warn(warning)
    if as_json:
        print_json({"moved": [moved_json(one) for one in moved], "warnings": list(warnings)})
    else:
        for one in moved:
            line(f"archived {plural(len(one.sessions), 'session')}: {one.source} → {one.target}")
        if not moved and not warnings:
            remark("no debug session is due")
        _remark_partly_due(archive.plan(settings), at)


def _print_plan(plan: Sequence[RetentionPlan], at: datetime, as_json: bool) -> None:
    if as_json:
        print_json({"plan": [kept_json(kept, kept.is_due(at)) for kept in plan]})
        return
    columns = (Column("SESSION"), Column("STATUS"), Column("KEPT UNTIL"), Column("RULE"), Column("FILE", free=True))
    print_table(columns, (_cells(kept, term, at) for kept in plan for term in kept.periods))
    due = sum(kept.is_due(at) for kept in plan)
    remark(f"{plural(due, 'file')} would be archived" if due else "no debug session is due")
    _remark_partly_due(plan, at)


def _remark_partly_due(plan: Sequence[RetentionPlan], at: datetime) -> None:
    for kept in plan:
        if not kept.expired(at) or kept.is_due(at):
            continue
        over, all_of_them = len(kept.expired(at)), len(kept.periods)
        are = "is" if over == 1 else "are"
        remark(f"{kept.file} stays: {over} of its {all_of_them} sessions {are} due, and a file goes as a whole")


def _cells(kept: RetentionPlan, term: RetentionPeriod, at: datetime) -> tuple[str, ...]:
    until = f"{day_of(term.until)}" if term.until else "always"
    named = {IN_PROGRESS: "in progress", UNDATED: "not dated"}
    rule = named.get(term.rule, f"{term.rule} ({plural(term.days or 0, 'day')})")
    return term.session_id, term.status, "due" if term.is_expired(at) else until, rule, kept.file


@click.command(epilog=json_help("debug archived"))
@reading_options
def archived(as_json: bool, strict: bool) -> None:
    """List the archived debug sessions, those archived last first.

    \b
    Example:
      ralphdeck debug archived
    """
    found = DebugArchive(chosen_project()).list_sessions()
    if as_json:
        print_json({"archived": [archived_session_json(item) for item in found], "findings": findings_json(())})
    else:
        columns = (Column("SESSION"), Column("STATUS"), Column("ARCHIVED"), Column("BY"), Column("FILE", free=True))
        rows = ((item.session.id, item.session.status, day(item.at), item.by, item.file) for item in found)
        print_table(columns, rows)
        if not found:
            remark("no archived debug sessions")
    end((), strict=strict)


@click.command(epilog=json_help("debug restore"))
@click.argument("session_id", metavar="SESSION")
@deciding_options
def restore(session_id: str, by: str | None, as_json: bool) -> None:
    """Bring the file of an archived session back to where it was; it is kept for another term.

    SESSION is its id, or how that begins.

    Of several files that hold the session the one that was archived last comes back, and the others are named.

    \b
    Example:
      ralphdeck debug archived && ralphdeck debug restore dm-001-example
    """
    restored = DebugArchive(chosen_project(), by=by or decider()).restore(session_id, now())
    if as_json:
        print_json({"moved": [moved_json(restored.moved)], "others": list(restored.others)})
        return
    line(f"restored {plural(len(restored.moved.sessions), 'session')}: {restored.moved.target}")
    for other in restored.others:
        taken = other in restored.taken
        how = "its place is taken now: move it by hand" if taken else "restore again to have that one, too"
        remark(f"{visible_line(restored.session_id, 80)} is in {other} as well, which stays archived; {how}")
