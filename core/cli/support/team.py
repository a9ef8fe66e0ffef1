"""Helpers of the team commands: the joined project, and lines about a sync."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError, ReadOnly, Refused
from core.base.text import plural, visible_line
from core.cli.support.output import line, remark, show_progress, warn
from core.cli.support.project import chosen_project, is_readonly, open_project
from core.learning.bursts import MEMBER
from core.records.decisions import ALL_USES, SENT, Verb

if TYPE_CHECKING:
    from core.decisions.case import Decided
    from core.project.project import Project
    from core.records.decisions import CurationState, Decision
    from core.records.team import TeamStatus
    from core.team.connection import Joined
    from core.team.follow import JoinedCopy
    from core.team.server import Space
    from core.team.sync import Cycle, Preview

_MAX_LISTED: Final = 20
_NOT_JOINED: Final = "this project has not joined a team; see: ralphdeck team join --help"


def check_writable() -> None:
    if is_readonly():
        raise ReadOnly("read-only: nothing is sent or written; start without --readonly and RALPHDECK_READONLY")


def find_joined_project() -> Joined | None:
    from core.team.connection import find_joined

    return find_joined(chosen_project().project)


def require_joined() -> Joined:
    joined = find_joined_project()
    if joined is None:
        raise Refused(_NOT_JOINED)
    return joined


def last_team_status() -> TeamStatus | None:
    """Return the team's last known state, without the network; None without a team."""
    from core.team.follow import read_status

    with suppress(RalphdeckError):
        return read_status(chosen_project().project) if find_joined_project() is not None else None
    return None


@contextmanager
def open_team(project: Project, joined: Joined, file: Path | None = None) -> Iterator[JoinedCopy]:
    from core.team.follow import JoinedCopy

    with show_progress() as progress, closing(JoinedCopy(project, joined, file=file, progress=progress)) as team:
        yield team


def withdraw_member(space: Space, joined: Joined, member: str, reason: str) -> Decided:
    """Withdraw all uses and unread patterns of a member, as one act."""
    from core.decisions.commands import WithdrawMember

    project = open_project()
    with open_team(project, joined) as team:
        team.sync(space)  # so that this project has all that the member sent
        snapshot = project.view.snapshot
        unread = tuple(
            id
            for id in space.patterns_of(member)
            if (arrival := snapshot.curation.arrivals.get(id)) is not None
            and (pattern := snapshot.patterns.get(id)) is not None
            and arrival.needs_review(pattern.content_hash)
        )
        decided = project.decide(WithdrawMember(member=member, until=space.now(), pattern_ids=unread, reason=reason))
        team.sync(space)
    return decided


def withdrawn_members(state: CurationState, decisions: Sequence[Decision]) -> list[str]:
    """Return members whose uses and unread patterns a decision in effect withdraws."""
    return sorted(
        {
            one.subject.removeprefix(MEMBER)
            for one in decisions
            if one.verb is Verb.REVOKE and one.after.get(SENT) == ALL_USES and one.id not in state.undone
        }
    )


def describe_preview(preview: Preview) -> str:
    parts = (
        plural(len(preview.patterns), "pattern"),
        plural(len(preview.decisions), "decision"),
        plural(len(preview.uses), "use"),
        *([plural(len(preview.trials), "trial")] if preview.trials else ()),
    )
    return ", ".join(parts)


def show_cycle(cycle: Cycle) -> None:
    from core.team.follow import describe_cycle

    line(describe_cycle(cycle))
    for text in (*cycle.refused, *cycle.notes):
        warn(visible_line(text, 300))
    show_conflicts(cycle.conflicts)


def show_conflicts(conflicts: tuple[str, ...]) -> None:
    if not conflicts:
        return
    for pattern_id in conflicts[:_MAX_LISTED]:
        warn(f"{visible_line(pattern_id, 80)} has another text in the space; nothing was overwritten")
    if len(conflicts) > _MAX_LISTED:
        warn(f"and {len(conflicts) - _MAX_LISTED:,} more")
    remark("To take one side for all of them: ralphdeck team sync --prefer local, or --prefer team")
