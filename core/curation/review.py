"""What a person should decide next, most worth deciding first (semantics 4, 5)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import Final

import numpy as np

from core.curation.rules import burst_subject, day, shown
from core.learning.bursts import Burst
from core.learning.proposing import Inversion
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState, Pin
from core.records.patterns import Maturity, Pattern
from core.settings import Settings
from core.text import plural, visible_line

INVERSION: Final = "inversion"
CONTRADICTED: Final = "contradicted"
STALE_PIN: Final = "stale-pin"
BURST: Final = "burst"

_HALF_WORTH_AT: Final = 10
"""A pattern that loops were given so often has half the weight of one that every loop gets."""
_UNSEEN_SHARE: Final = 0.5
"""Failure share of a text that nobody has judged yet."""


@dataclass(frozen=True, kw_only=True)
class ReviewItem:
    """One thing to decide.

    Attributes:
        kind: `inversion`, `contradicted`, `stale-pin` or `burst`.
        subject: Id of the pattern that it is about; of a burst its source.
        question: One line.
        reason: Why it is asked, and why at this place; one line.
        worth: 0..1, how often loops get it times how badly it does; the queue is sorted by it.
        propose: Makes the proposal, for an inversion.
        burst: The marks that wait, for a burst.
    """

    kind: str
    subject: str
    question: str
    reason: str
    worth: float
    propose: Callable[[], Inversion] | None = field(default=None, compare=False, repr=False)
    burst: Burst | None = None

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
) -> tuple[ReviewItem, ...]:
    """Everything that waits for a decision and is not snoozed at `now`, most worth deciding first."""
    items = [
        item
        for item in (*_inversions(board, curation, settings), *_pins(board, curation), *_bursts(board))
        if (item.burst or item.subject in patterns) and not _is_snoozed(item, curation, now)
    ]
    return tuple(sorted(items, key=lambda item: (-item.worth, item.kind, item.subject)))


def _is_snoozed(item: ReviewItem, curation: CurationState, now: datetime) -> bool:
    verdict = curation.inversions.get(burst_subject(item.burst) if item.burst else item.subject)
    return verdict is not None and verdict.until is not None and verdict.until > now


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
    return f"loops got it {plural(_exposure(board, pattern_id), 'time')}"


def _worth(board: Scoreboard, pattern_id: str, failure_share: float) -> float:
    exposure = _exposure(board, pattern_id)
    return failure_share * exposure / (exposure + _HALF_WORTH_AT)
