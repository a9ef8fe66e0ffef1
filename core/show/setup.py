"""How far a project is set up, in words: its folder, connected agents, trust, and sessions to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.text import plural
from core.index.records import RecordMap
from core.index.review_items import OFFER

if TYPE_CHECKING:
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.records.loops import Loop

SHOWN_SPAN: Final = timedelta(days=30)  # sessions of this time are counted before anything is learned
MOST_PROPOSED: Final = 20  # sessions from which lessons are proposed at once, the best ones
_MOST_COUNTED: Final = 1_000


class Setup(Struct, frozen=True, kw_only=True):
    """How far a project is set up.

    `connected` are titles of agents. `writes` are the files that connecting `agent`, which is in use, would write, each
    with its purpose; empty if an agent is connected. `hooks` says how the hooks answer, "" if that is not known.
    """

    has_folder: bool = True
    connected: tuple[str, ...] = ()
    agent: str = ""
    writes: tuple[tuple[str, str], ...] = ()
    is_trusted: bool = True
    hooks: str = ""
    has_hook_problem: bool = False


def describe_empty(connected: Sequence[str], *, has_sessions: bool = False) -> str:
    """Return why a list of sessions or lessons is empty; `connected` are the titles of agents."""
    if has_sessions:
        return "No lesson yet. One is found when a failing check passes after a change"
    if connected:
        return f"Connected: {', '.join(connected)}. No session yet"
    return "No session yet. To connect an agent: ralphdeck start. To look around: ralphdeck demo"


def find_offers(state: ProjectState) -> tuple[ReviewItem, ...]:
    """Return the sessions from which lessons can be proposed, best first; those found so far."""
    if state.snapshot.as_of is not None:
        return ()
    return tuple(item for item in state.queue if item.kind == OFFER and item.offer is not None and item.offer.new)


def is_first_start(state: ProjectState) -> bool:
    """Return whether agents have left sessions of the last 30 days, but nothing was learned or decided yet."""
    snapshot = state.snapshot
    is_new = not snapshot.patterns and not snapshot.curation.undoable
    return is_new and any(loop.is_agent_session for loop in _recent(state))


def count_sessions(state: ProjectState) -> int:
    """Return the number of sessions of agents of the last 30 days, at most 1,000."""
    return sum(loop.is_agent_session for loop in _recent(state))


def _recent(state: ProjectState) -> Sequence[Loop]:
    begin, loops = state.now - SHOWN_SPAN, state.snapshot.loops
    if isinstance(loops, RecordMap):
        return loops.placed_since(begin, _MOST_COUNTED)
    return [loop for loop in loops.values() if loop.started_at is not None and loop.started_at >= begin]


def offers_text(offers: Sequence[ReviewItem], *, is_searching: bool) -> str:
    """Describe what can be learned: `9 fixes could become lessons: about 4 minutes to read`."""
    count = sum(len(item.offer.new) for item in offers if item.offer is not None)
    if not count:
        return "looking for fixes in them" if is_searching else "no fix in them could become a lesson"
    minutes = max(round(sum(item.seconds for item in offers) / 60), 1)
    more = " so far" if is_searching else ""
    lessons = "a lesson" if count == 1 else "lessons"
    return f"{plural(count, 'fix', 'fixes')} could become {lessons}{more}: about {plural(minutes, 'minute')} to read"
