"""Text about the team of the project: who is here, open questions, and the state of the connection."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.text import plural, visible_line
from tui.screens.frame import TeamDetail
from tui.screens.numbers import moment_text, to_local

if TYPE_CHECKING:
    from core.records.team_status import Lease, TeamStatus

NAME_CELLS: Final = 20
MAX_NAMED: Final = 2  # other members that are named in the top bar
_MINUTE: Final = timedelta(minutes=1)


def top_text(status: TeamStatus, now: datetime, detail: TeamDetail) -> Content:
    """Return the team's part of the top bar: members here, or since when the project is offline."""
    if detail is TeamDetail.NOTHING or (not status.is_online and status.since is None):
        return Content("")
    if status.offline_since is not None:
        return Content.styled(offline_text(status, now, detail), "$warning")
    space = f"team {visible_line(status.space, NAME_CELLS)}" if detail < TeamDetail.SHORT else ""
    others = [visible_line(name, NAME_CELLS) for name in status.members_here]
    here = f"{len(others) + 1} here" if others else ""
    if detail is TeamDetail.NAMES and 0 < len(others) <= MAX_NAMED:
        here = f"{' and '.join(others)} here"
    text = Content.styled(": ".join(filter(None, (space, here))), "$foreground" if others else "$quiet")
    if not status.differing:
        return text
    return Content.assemble(text, (f"{', ' if text else ''}{plural(status.differing, 'conflict')}", "$warning"))


def offline_text(status: TeamStatus, now: datetime, detail: TeamDetail = TeamDetail.NAMES) -> str:
    """Return since when the project is offline, and how much has to be sent."""
    if status.offline_since is None or detail >= TeamDetail.WORD:
        return "offline"
    since = clock_text(status.offline_since, now)
    if detail is TeamDetail.CLOCK:
        return f"offline {since}"
    return f"offline since {since}" + (f", {status.to_send:,} to send" if status.to_send else "")


def clock_text(moment: datetime, now: datetime) -> str:
    """Return a local time of day: `12:03`; with the day if it is not today."""
    local = to_local(moment)
    return f"{local:%H:%M}" if local.date() == to_local(now).date() else moment_text(moment, now)


def lease_text(lease: Lease, now: datetime) -> str:
    """Return where and for how long a question is open: `open at Ada, 2 min`."""
    minutes = (now - lease.since) // _MINUTE
    return f"open at {visible_line(lease.member, NAME_CELLS)}, {f'{minutes:,} min' if minutes > 0 else 'just now'}"


def help_rows(status: TeamStatus, now: datetime) -> list[tuple[str, str]]:
    """Return label and text of each line about the team in the help."""
    space = visible_line(status.space, 80)
    role = f", {visible_line(status.level, NAME_CELLS)}" if status.level else ""
    rows = [("space", f"{space}; you are {visible_line(status.member, 40)}{role}" if status.member else space)]
    if status.is_online:
        rows += [
            (visible_line(one.member, NAME_CELLS), f"{visible_line(one.project, 60)}, {visible_line(one.place, 20)}")
            for one in status.present
            if one.client_id != status.client_id
        ]
    elif status.since is not None:
        rows.append(("connection", f"{offline_text(status, now)}: {visible_line(status.problem, 300)}"))
    if status.last_sync is not None:
        rows.append(("last sync", moment_text(status.last_sync, now)))
    if status.differing:
        conflicts = f"{plural(status.differing, 'pattern')} with another text in the space; see: ralphdeck team status"
        rows.append(("conflicts", conflicts))
    return rows
