"""How often work followed a pattern it was given (docs/scoring.md#followed).

The verdicts are events, made when work ends; lists read no log of actions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgspec import Struct

from core.base.steps import group_pairs
from core.base.text import plural
from core.records.events import VERDICT, Event

if TYPE_CHECKING:
    from collections.abc import Callable

    from core.records.loops import InjectedUse, Loop

REPORTED = "the agent reported it"
_USES = frozenset({"applied", "feedback"})
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class WorkVerdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Whether a loop or attempt followed a pattern it was given; None if unclear.

    `work_id` is the work in the event; `action` is the number of the action in the log of an attempt that shows it.
    """

    pattern_id: str
    work_id: str
    is_followed: bool | None = None
    at: datetime | None = None  # when it was given first
    action: int | None = None
    iteration: int | None = None
    evidence: str = ""  # what the action did; untrusted

    @property
    def word(self) -> str:
        """The verdict as people read it."""
        return {True: "followed", False: "not followed", None: "can't tell"}[self.is_followed]

    @property
    def place(self) -> str:
        """Where the evidence is: `action 7`, `iteration 2`, or ""."""
        if self.action is not None:
            return f"action {self.action:,}"
        return f"iteration {self.iteration:,}" if self.iteration is not None else ""


class FollowCounts(Struct, frozen=True, kw_only=True):
    """The verdicts of all work that was given a pattern."""

    given: int = 0
    followed: int = 0
    not_followed: int = 0

    @classmethod
    def of(cls, verdicts: Iterable[WorkVerdict]) -> FollowCounts:
        known = [one.is_followed for one in verdicts]
        return cls(given=len(known), followed=known.count(True), not_followed=known.count(False))

    @property
    def unclear(self) -> int:
        return self.given - self.followed - self.not_followed

    @property
    def judged(self) -> int:
        """The number of clear verdicts."""
        return self.followed + self.not_followed

    @property
    def text(self) -> str:
        """Such as `given in 12 sessions: 7 followed it, 5 did not`; "" if never given."""
        if not self.given:
            return ""
        counts = (
            (self.followed, "followed it"),
            (self.not_followed, "did not"),
            (self.unclear, "can't tell"),
        )
        parts = ", ".join(f"{count:,} {word}" for count, word in counts if count)
        return f"given in {plural(self.given, 'session')}: {parts}"


def find_verdicts(
    events: Iterable[Event], uses: Iterable[tuple[Loop, InjectedUse]], owner_of: Callable[[str], str]
) -> list[WorkVerdict]:
    """Return the verdicts of works given a pattern, in the order they were given it.

    `events` are those about one pattern, `uses` the entries of loops about it. The attempts at the task of a loop are
    one work with it: if one of them followed the pattern, the loop did.
    """
    entries = group_pairs((loop.id, use) for loop, use in uses)
    own = group_pairs((owner_of(event.loop_id), event) for event in events if event.loop_id)
    found = (_merge(work, own.get(work, ()), entries.get(work, ())) for work in dict.fromkeys((*own, *entries)))
    return sorted((one for one in found if one is not None), key=lambda one: (one.at or _LONG_AGO, one.work_id))


def find_loop_verdicts(events: Iterable[Event], entries: Iterable[InjectedUse]) -> dict[str, WorkVerdict]:
    """Return a loop's verdicts by pattern; `events` are all about its work."""
    uses = group_pairs((use.pattern_id, use) for use in entries)
    own = group_pairs((event.pattern_id, event) for event in events if event.pattern_id)
    found = {id: _merge("", own.get(id, ()), uses.get(id, ())) for id in dict.fromkeys((*own, *uses))}
    return {id: one for id, one in found.items() if one is not None}


def _merge(work_id: str, events: Sequence[Event], entries: Sequence[InjectedUse]) -> WorkVerdict | None:
    """Merge one work's records on one pattern; None if the work was not given it."""
    given = [event for event in events if event.kind == "injected"]
    if not given and not entries:
        return None
    id = given[0].pattern_id if given else entries[0].pattern_id
    at = min((event.at for event in given), default=entries[0].at if entries else None)
    known = [event for event in events if event.kind == VERDICT and event.is_followed is not None]
    best = next((event for event in known if event.is_followed), known[-1] if known else None)
    if best is not None and best.is_followed:
        return _of_event(id, best, at)
    if any(event.kind in _USES for event in events) or any(use.applied for use in entries):
        reported = next((event.loop_id for event in events if event.kind in _USES), work_id)
        return WorkVerdict(pattern_id=id, work_id=reported, is_followed=True, at=at, evidence=REPORTED)
    if best is not None:
        return _of_event(id, best, at)
    return WorkVerdict(pattern_id=id, work_id=given[-1].loop_id if given else work_id, at=at)


def _of_event(pattern_id: str, event: Event, at: datetime | None) -> WorkVerdict:
    return WorkVerdict(
        pattern_id=pattern_id,
        work_id=event.loop_id,
        is_followed=event.is_followed,
        at=at,
        action=event.action,
        iteration=event.iteration,
        evidence=event.text,
    )
