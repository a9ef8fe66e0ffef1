"""What a person should decide next, most worth deciding first (semantics 4, 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from types import MappingProxyType
from typing import Final

import numpy as np

from core.curation.rules import (
    burst_subject,
    day,
    duplicate_question,
    extraction_question,
    shown,
)
from core.debug_memory.waiting import Escalated
from core.extraction.proposals import Extraction
from core.learning.bursts import Burst
from core.learning.decay import decayed_value
from core.learning.proposing import Inversion
from core.learning.scoreboard import Scoreboard
from core.records.debug_sessions import DebugSession, Escalation
from core.records.decisions import CurationState, Pin
from core.records.patterns import Maturity, Pattern
from core.settings import Settings
from core.text import plural, visible_line

INVERSION: Final = "inversion"
CONTRADICTED: Final = "contradicted"
STALE_PIN: Final = "stale-pin"
BURST: Final = "burst"
QUARANTINE: Final = "quarantine"
EXTRACTED: Final = "extracted"
DUPLICATE: Final = "duplicate"
OFFER: Final = "offer"
ESCALATION: Final = "escalation"

_HALF_WORTH_AT: Final = 10
"""A pattern that loops were given so often has half the weight of one that every loop gets."""
_UNSEEN_SHARE: Final = 0.5
"""Failure share of a text that nobody has judged yet."""
_TIDYING_SHARE: Final = 0.25
"""What a question weighs that keeps the registry tidy: nothing fails while it waits."""
_STUCK_WORTH: Final = 0.9
"""What an escalation weighs when it is new: an agent is stuck until somebody looks. It decays like outcomes."""


@dataclass(frozen=True, kw_only=True)
class ReviewItem:
    """One thing to decide.

    Attributes:
        kind: `inversion`, `contradicted`, `stale-pin`, `burst`, `quarantine` (a text that nobody has seen, and no
            loop gets until then), `extracted` (one that loops get already), `duplicate`, `offer` or `escalation`.
        subject: Id of the pattern that it is about; of a burst its source; of an offer the loop; of an escalation
            the debug session.
        question: One line.
        reason: Why it is asked, and why at this place; one line.
        worth: 0..1, how often loops get it times how badly it does; the queue is sorted by it.
        propose: Makes the proposal, for an inversion.
        burst: The marks that wait, for a burst.
        other: The pattern that would be merged into the subject, for a duplicate; with `likeness`, 0..1.
        offer: What could be extracted, for an offer.
        escalated: The debug session that was escalated, for an escalation.
    """

    kind: str
    subject: str
    question: str
    reason: str
    worth: float
    propose: Callable[[], Inversion] | None = field(default=None, compare=False, repr=False)
    burst: Burst | None = None
    other: str = ""
    likeness: float = 0.0
    offer: Extraction | None = None
    escalated: Escalated | None = None

    @property
    def session(self) -> DebugSession | None:
        """The debug session that was escalated, for an escalation."""
        return self.escalated.session if self.escalated is not None else None

    @property
    def question_key(self) -> str:
        """What a snooze or a dismissal of the question is filed under."""
        if self.burst is not None:
            return burst_subject(self.burst)
        if self.other:
            return duplicate_question(self.subject, self.other)
        if self.escalated is not None:
            return self.escalated.question
        return extraction_question(self.subject) if self.offer is not None else self.subject

    @property
    def about(self) -> str:
        """How people call what the question is about, where `question_key` says more than they want to read."""
        if self.session is None:
            return ""
        return f"escalation at {visible_line(self.session.file_path, 200) or shown(self.session.id)}"

    @property
    def is_about_pattern(self) -> bool:
        """Whether the subject is a pattern."""
        return self.burst is None and self.offer is None and self.escalated is None

    @cached_property
    def inversion(self) -> Inversion | None:
        """The proposal, for an inversion. Made when it is looked at: a queue can be long, and is made often."""
        return self.propose() if self.propose else None


def review_queue(
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    curation: CurationState,
    now: datetime,
    settings: Settings,
    alike: Sequence[tuple[str, str, float]] = (),
    offers: Mapping[str, Extraction] = MappingProxyType({}),
    escalated: Iterable[Escalated] = (),
) -> tuple[ReviewItem, ...]:
    """Everything that waits for a decision and is not snoozed at `now`, most worth deciding first.

    Args:
        patterns, board, curation, settings: What is known.
        now: The present moment.
        alike: Pairs of patterns that say nearly the same, with their likeness, best first.
        offers: What could be extracted, by loop.
        escalated: The debug sessions that were escalated.
    """
    items = [
        item
        for item in (
            *_inversions(board, curation, settings),
            *_pins(board, curation),
            *_bursts(board),
            *_arrivals(patterns, board, curation),
            *_duplicates(patterns, board, alike),
            *_offers(offers),
            *_escalations(escalated, now, settings),
        )
        if (not item.is_about_pattern or item.subject in patterns) and not _is_answered(item, curation, now)
    ]
    return tuple(sorted(items, key=lambda item: (-item.worth, item.kind, item.subject)))


def _is_answered(item: ReviewItem, curation: CurationState, now: datetime) -> bool:
    verdict = curation.inversions.get(item.question_key)
    snoozed = verdict is not None and verdict.until is not None and verdict.until > now
    return snoozed or item.question_key in curation.dismissed


def _inversions(board: Scoreboard, curation: CurationState, settings: Settings) -> Iterator[ReviewItem]:
    for row in np.flatnonzero(board.inversion_due):
        pattern_id = board.ids[row]
        failures, total = int(board.failures[row]), int(board.failures[row] + board.successes[row])
        verdict = curation.inversions.get(pattern_id)
        if verdict is not None:
            # The board may be older than the last decision.
            more = failures - verdict.failures
            if verdict.verdict == "accepted" or (
                verdict.verdict == "rejected" and more < settings.anti_pattern.failures_until_asked_again
            ):
                continue
        again = ""
        if verdict is not None and verdict.verdict == "rejected":
            again = f"; rejected on {day(verdict.at)}, {plural(more, 'further failure')} since"
        yield ReviewItem(
            kind=INVERSION,
            subject=pattern_id,
            question=f"Turn {shown(pattern_id)} into a warning?",
            reason=f"{failures} of {plural(total, 'use')} failed{again}; {_given(board, pattern_id)}",
            worth=_worth(board, pattern_id, failures / total if total else 0.0),
            propose=partial(board.proposal, pattern_id),
        )


def _pins(board: Scoreboard, curation: CurationState) -> Iterator[ReviewItem]:
    for pattern_id, pin in curation.pins.items():
        if pattern_id not in board:
            continue
        row = board.row(pattern_id)
        if board.pin_stale[row]:
            yield ReviewItem(
                kind=STALE_PIN,
                subject=pattern_id,
                question=f"Does the decision on {shown(pattern_id)} hold for its new text?",
                reason=f"{_decided(pin)}; its text has changed since; {_given(board, pattern_id)}",
                worth=_worth(board, pattern_id, _UNSEEN_SHARE),
            )
        elif board.contradicted[row]:
            yield _contradicted(board, pattern_id, pin)


def _contradicted(board: Scoreboard, pattern_id: str, pin: Pin) -> ReviewItem:
    good, bad = board.later_results(pattern_id)
    against, word = (good, "succeeded") if pin.state is Maturity.DEPRECATED else (bad, "failed")
    return ReviewItem(
        kind=CONTRADICTED,
        subject=pattern_id,
        question=f"Keep {shown(pattern_id)} {pin.verb}?",
        reason=f"{_decided(pin)}; since then {against} of {plural(good + bad, 'use')} {word}; "
        f"{_given(board, pattern_id)}",
        worth=_worth(board, pattern_id, against / (good + bad) if good + bad else 0.0),
    )


def _bursts(board: Scoreboard) -> Iterator[ReviewItem]:
    for burst in board.bursts:
        count = len(burst.patterns)
        yield ReviewItem(
            kind=BURST,
            subject=burst.source,
            question=f"Do the {count:,} harmful marks of {shown(burst.source)} count?",
            reason=burst_text(burst),
            worth=count / (count + _HALF_WORTH_AT),
            burst=burst,
        )


def _arrivals(patterns: Mapping[str, Pattern], board: Scoreboard, curation: CurationState) -> Iterator[ReviewItem]:
    for pattern_id, arrival in curation.arrivals.items():
        pattern = patterns.get(pattern_id)
        if pattern is None or pattern_id not in board or not arrival.waits(pattern.content_hash):
            continue
        came = f"{_ARRIVED[arrival.kind]} by {visible_line(arrival.by, 40)} on {day(arrival.at)}"
        reason = f": {visible_line(arrival.reason, 120)}" if arrival.reason else ""
        row = board.row(pattern_id)
        if board.quarantined[row]:
            yield ReviewItem(
                kind=QUARANTINE,
                subject=pattern_id,
                question=f"May loops get {shown(pattern_id)}?",
                reason=f"{came}{reason}; no loop gets it until you have seen its text",
                worth=_UNSEEN_SHARE * (1 + board.uses[row]) / (1 + board.uses[row] + _HALF_WORTH_AT),
            )
        elif not arrival.blocks:
            yield ReviewItem(
                kind=EXTRACTED,
                subject=pattern_id,
                question=f"Keep {shown(pattern_id)}?",
                reason=f"{came}{reason}; nobody has read it, and {_given(board, pattern_id)}",
                worth=_worth(board, pattern_id, _UNSEEN_SHARE),
            )


_ARRIVED: Final = {"import": "imported", "extraction": "extracted unattended", "quarantine": "put into quarantine"}


def _duplicates(
    patterns: Mapping[str, Pattern], board: Scoreboard, alike: Sequence[tuple[str, str, float]]
) -> Iterator[ReviewItem]:
    """Of each pattern only the likest: when that is decided, the next one comes."""
    asked: set[str] = set()
    for one, other, likeness in alike:
        if not asked.isdisjoint((one, other)) or one not in patterns or other not in patterns:
            continue
        if patterns[one].mirror_of or patterns[other].mirror_of or one not in board or other not in board:
            continue
        kept, merged = sorted((one, other), key=lambda id: (-_exposure(board, id), id))
        asked |= {kept, merged}
        yield ReviewItem(
            kind=DUPLICATE,
            subject=kept,
            question=f"Merge {shown(merged)} into {shown(kept)}?",
            reason=f"{likeness:.0%} alike; {_given(board, kept)}, the other one {_times(board, merged)}",
            worth=_worth(board, kept, _TIDYING_SHARE * likeness),
            other=merged,
            likeness=likeness,
        )


def _offers(offers: Mapping[str, Extraction]) -> Iterator[ReviewItem]:
    """Of loops that offer the very same only one: when that is decided, the next one comes."""
    same: dict[frozenset[tuple[str, str]], list[str]] = {}
    for source_id, offer in offers.items():
        said = frozenset((one.duplicate_of, one.headline) for one in (*offer.new, *offer.merges))
        same.setdefault(said, []).append(source_id)
    for said, (source_id, *others) in same.items():
        offer = offers[source_id]
        new, further = len(offer.new), len(offer.merges)
        also = f"; {plural(len(others), 'other loop')} offered the same" if others else ""
        if said:
            yield ReviewItem(
                kind=OFFER,
                subject=source_id,
                question=f"Extract what {shown(source_id)} has learned?",
                reason=f"{offer_text(offer)}{also}",
                worth=_TIDYING_SHARE * (new + further) / (new + further + _HALF_WORTH_AT),
                offer=offer,
            )


def _escalations(escalated: Iterable[Escalated], now: datetime, settings: Settings) -> Iterator[ReviewItem]:
    """(4) on_escalation notify_human, whoever told that a session is escalated."""
    for one in escalated:
        session, at = one.session, one.at
        since = f", on {day(at)}" if at is not None else ""
        called = f"; {call_text(one.call)}" if one.call is not None else ""
        yield ReviewItem(
            kind=ESCALATION,
            subject=session.id,
            question=f"An agent is stuck at {visible_line(session.file_path, 80) or shown(session.id)}: seen?",
            reason=f"escalated after {plural(len(session.executions), 'run')}{since}{called}; {stuck_text(session)}",
            worth=_STUCK_WORTH * decayed_value(at or now, now, settings.learning.half_life_days),
            escalated=one,
        )


def call_text(call: Escalation) -> str:
    """Why a person was called, and by whom, in one line: `needs credentials — by ada`."""
    by = f"by {visible_line(call.by, 40) or 'nobody named'}"
    return f"{visible_line(call.reason, 200)} — {by}" if call.reason else f"called {by}"


def stuck_text(session: DebugSession) -> str:
    """What an escalated session could not fix, in one line."""
    run = session.newest_failing
    if run is None:
        return "no run tells what failed"
    failure = run.failures[0]
    more = f", and {plural(len(run.failures) - 1, 'further failure')}" if len(run.failures) > 1 else ""
    return visible_line(f"{failure.error_type}: {failure.message}".strip(": "), 160) + more


def offer_text(offer: Extraction) -> str:
    """What could be extracted, in one line: `3 patterns to extract, 1 further use of a known one`."""
    new, further = len(offer.new), len(offer.merges)
    told = [f"{plural(new, 'pattern')} to extract"] if new else []
    told += [f"{plural(further, 'further use')} of known ones"] if further else []
    return ", ".join(told)


def burst_text(burst: Burst) -> str:
    """A burst in one line."""
    blamed = plural(len(burst.patterns), "pattern")
    applied = {0: "", len(burst.patterns): " that it never applied"}.get(
        burst.never_applied, f", {burst.never_applied:,} of which it never applied"
    )
    return f"{shown(burst.source)} blames {blamed}{applied}; its marks are held until somebody decides"


def _decided(pin: Pin) -> str:
    return f"{pin.verb} by {visible_line(pin.by, 40)} on {day(pin.at)}"


def _exposure(board: Scoreboard, pattern_id: str) -> int:
    row = board.row(pattern_id)
    return int(board.uses[row] + board.exposures[row])


def _given(board: Scoreboard, pattern_id: str) -> str:
    return f"loops got it {_times(board, pattern_id)}"


def _times(board: Scoreboard, pattern_id: str) -> str:
    return plural(_exposure(board, pattern_id), "time")


def _worth(board: Scoreboard, pattern_id: str, failure_share: float) -> float:
    exposure = _exposure(board, pattern_id)
    return failure_share * exposure / (exposure + _HALF_WORTH_AT)
