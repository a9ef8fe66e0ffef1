"""Whether states hold: inversions that are due, pins that evidence or a new text speaks against."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from core.curation.rules import day, shown
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState, Pin
from core.records.patterns import Maturity
from core.review.items import (
    CONTRADICTED,
    INVERSION,
    STALE_PIN,
    ReviewItem,
)
from core.review.telling import decided, given
from core.review.worth import UNSEEN_SHARE, worth
from core.settings import Settings
from core.text import plural


def inversions(board: Scoreboard, curation: CurationState, settings: Settings) -> Iterator[ReviewItem]:
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
            reason=f"{failures} of {plural(total, 'use')} failed{again}; {given(board, pattern_id)}",
            worth=worth(board, pattern_id, failures / total if total else 0.0),
            propose=partial(board.proposal, pattern_id),
        )


def pins(board: Scoreboard, curation: CurationState) -> Iterator[ReviewItem]:
    for pattern_id, pin in curation.pins.items():
        if pattern_id not in board:
            continue
        row = board.row(pattern_id)
        if board.pin_stale[row]:
            yield ReviewItem(
                kind=STALE_PIN,
                subject=pattern_id,
                question=f"Does the decision on {shown(pattern_id)} hold for its new text?",
                reason=f"{decided(pin)}; its text has changed since; {given(board, pattern_id)}",
                worth=worth(board, pattern_id, UNSEEN_SHARE),
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
        reason=f"{decided(pin)}; since then {against} of {plural(good + bad, 'use')} {word}; "
        f"{given(board, pattern_id)}",
        worth=worth(board, pattern_id, against / (good + bad) if good + bad else 0.0),
    )
