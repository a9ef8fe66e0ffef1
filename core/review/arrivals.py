"""What came and nobody has read: imports, extractions, what loops offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from core.curation.rules import day, shown
from core.extraction.proposals import Extraction
from core.learning.scoreboard import Scoreboard
from core.records.decisions import CurationState
from core.records.patterns import Pattern
from core.review.items import (
    EXTRACTED,
    OFFER,
    QUARANTINE,
    ReviewItem,
)
from core.review.telling import given, offer_text
from core.review.worth import HALF_WORTH_AT, TIDYING_SHARE, UNSEEN_SHARE, worth
from core.text import plural, visible_line


def arrivals(patterns: Mapping[str, Pattern], board: Scoreboard, curation: CurationState) -> Iterator[ReviewItem]:
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
                worth=UNSEEN_SHARE * (1 + board.uses[row]) / (1 + board.uses[row] + HALF_WORTH_AT),
            )
        elif not arrival.blocks:
            yield ReviewItem(
                kind=EXTRACTED,
                subject=pattern_id,
                question=f"Keep {shown(pattern_id)}?",
                reason=f"{came}{reason}; nobody has read it, and {given(board, pattern_id)}",
                worth=worth(board, pattern_id, UNSEEN_SHARE),
            )


_ARRIVED: Final = {"import": "imported", "extraction": "extracted unattended", "quarantine": "put into quarantine"}


def offered(offers: Mapping[str, Extraction]) -> Iterator[ReviewItem]:
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
                worth=TIDYING_SHARE * (new + further) / (new + further + HALF_WORTH_AT),
                offer=offer,
            )
