"""Questions about new texts: imports, extractions, offers, learnings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from core.base.formatting import format_day
from core.base.text import plural, visible_line
from core.extraction.clustering import Cluster
from core.records.decisions import CurationState
from core.records.extractions import Extraction
from core.review.impact import UNSEEN_USES
from core.review.messages import offer_text
from core.review.priority import ImpactEstimator
from core.review.reading_time import chars_offered
from core.scanning.messages import describe_suspicions
from core.state.review_items import EXTRACTED, HELD, OFFER, QUARANTINE, RECURRING, HeldText, ReviewItem

SUSPECTED: Final = 2.0
"""Factor on the impact of texts with scan results, which may do other harm than fail."""
_ARRIVED: Final = {"import": "imported", "extraction": "extracted unattended", "quarantine": "quarantined"}


def arrivals(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Imported, extracted or quarantined texts that no person has released."""
    board = scales.board
    for pattern_id, arrival in curation.arrivals.items():
        pattern = scales.patterns.get(pattern_id)
        if pattern is None or pattern_id not in board or not arrival.waits(pattern.content_hash):
            continue
        came = f"{_ARRIVED[arrival.kind]} by {visible_line(arrival.by, 40)} on {format_day(arrival.at)}"
        reason = f": {visible_line(arrival.reason, 120)}" if arrival.reason else ""
        reason += f"; this text {describe_suspicions(pattern.suspicions)}" if pattern.suspicions else ""
        doubt = SUSPECTED if pattern.suspicions else 1.0
        row = board.row(pattern_id)
        if board.held[row]:
            continue  # asked about as a held text
        if board.quarantined[row]:
            yield scales.item(
                QUARANTINE,
                pattern_id,
                question="Release {} from quarantine?",
                reason=f"{came}{reason}",
                place="not injected until you release its text",
                impact=doubt * scales.unseen(pattern_id, is_withheld=True),
            )
        elif not arrival.blocks:
            yield scales.item(
                EXTRACTED,
                pattern_id,
                question="Approve {} (extracted automatically)?",
                reason=f"{came}{reason}",
                impact=doubt * scales.unseen(pattern_id, is_withheld=bool(scales.stakes.is_withheld[row])),
            )


def suspected(scales: ImpactEstimator, curation: CurationState) -> Iterator[ReviewItem]:
    """Texts that the scan blocks or holds."""
    board = scales.board
    for row in np.flatnonzero(board.quarantined).tolist():
        pattern = scales.patterns[board.ids[row]]
        arrival = curation.arrivals.get(pattern.id)
        waits = arrival is not None and arrival.waits(pattern.content_hash)
        if not board.held[row] and (waits or not board.blocked[row]):
            continue
        kind, question = QUARANTINE, "Release {} from quarantine?"
        place = "not injected unless you release it with a reason"
        if board.held[row]:
            kind, question = HELD, "Approve {}, which gives orders?"
            place = "not injected until you approve this text"
        yield scales.item(
            kind,
            pattern.id,
            question=question,
            reason=f"this text {describe_suspicions(pattern.suspicions)}",
            place=place,
            impact=SUSPECTED * scales.unseen(pattern.id, is_withheld=True),
        )


def held_texts(scales: ImpactEstimator, curation: CurationState, texts: Sequence[HeldText]) -> Iterator[ReviewItem]:
    """Held reflections that no person has approved."""
    for held in texts:
        if curation.approves_text(held.text):
            continue
        readers = plural(len(held.readers), "running loop or last task", "running loops and last tasks")
        yield scales.item(
            HELD,
            held.id,
            question="Approve {}, which gives orders?",
            name=f"the reflection {visible_line(held.id, 80)}",
            this="this reflection",
            reason=f"this text {held.does}",
            place=f"{readers} would get it",
            impact=SUSPECTED * scales.new(float(len(held.readers))),
            chars=len(held.text),
            held_text=held,
            evidence=len(held.sources),
        )


def offered(scales: ImpactEstimator, offers: Mapping[str, Extraction]) -> Iterator[ReviewItem]:
    """Extraction offers; of loops that offer the same only one at a time."""
    same: dict[frozenset[tuple[str, str]], list[str]] = {}
    for source_id, offer in offers.items():
        content = frozenset((one.duplicate_of, one.headline) for one in (*offer.new, *offer.merges))
        same.setdefault(content, []).append(source_id)
    for content, (source_id, *others) in same.items():
        offer = offers[source_id]
        also = f"; {plural(len(others), 'other loop')} offered the same" if others else ""
        if content:
            yield scales.item(
                OFFER,
                source_id,
                question="Extract patterns from {}?",
                this="this loop",
                reason=f"{offer_text(offer)}{also}",
                place="",
                impact=scales.new((1 + len(others) + UNSEEN_USES) * len(offer.new)),
                chars=chars_offered(offer),
                further=len(offer.new) - 1,
                offer=offer,
                evidence=len(content) + len(others),
            )


def recurring(scales: ImpactEstimator, learned: Sequence[tuple[Cluster, Extraction]]) -> Iterator[ReviewItem]:
    """Learnings that several loops reported and no pattern covers."""
    now, half_life = scales.board.now, scales.settings.maturity.half_life_days
    for cluster, offer in learned:
        ages = [max((now - one.reflection.at).days, 0) for one in cluster.members if one.reflection.at is not None]
        sources = plural(len(cluster.sources), "loop")
        last = f", last on {format_day(cluster.last_at)}" if cluster.last_at is not None else ""
        yield scales.item(
            RECURRING,
            cluster.id,
            question=f"Create a pattern from {{}} that {sources} reported?",
            name=f"the lesson “{visible_line(cluster.text, 80)}”",
            this="a lesson",
            reason="no pattern contains it",
            place=f"reported {plural(len(cluster.members), 'time')}{last}",
            impact=scales.new(float(np.exp2(-np.array(ages, np.float64) / half_life).sum())),
            chars=len(cluster.text) + chars_offered(offer),
            offer=offer,
            evidence=len(cluster.members),
        )
