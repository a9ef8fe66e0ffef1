"""What an answer in Review would change for the loops that run now, worked out before anything is written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from core.curation.batches import with_id
from core.curation.merging import as_read, merged
from core.curation.rules import anti_pattern, as_pattern
from core.curation.settling import ID_PREFIXES
from core.extraction.proposals import Extraction
from core.learning.assessment import Assessment
from core.learning.bursts import Burst
from core.learning.proposing import Inversion
from core.lineage import LineageEvent
from core.records.decisions import BurstVerdict, CurationState, InversionVerdict, Pin
from core.records.patterns import Maturity, Pattern, PatternType
from core.retrieval.index import LazyIndex
from core.review.items import BURST, DUPLICATE, ESCALATION, EXTRACTED, INVERSION, OFFER, QUARANTINE, ReviewItem
from core.snapshot import Delta
from core.view import View

MAX_LOOPS: Final = 20
"""Running loops that are looked at, newest first."""
_SUPPOSED_ID: Final = "{}-{}-{:03}"
"""The id of a pattern that does not exist yet: no context shows it, but it decides between equal scores."""
_ANSWERS: Final = {
    INVERSION: "accept",
    BURST: "confirm",
    QUARANTINE: "release",
    EXTRACTED: "archive",
    DUPLICATE: "merge",
    OFFER: "extract",
    ESCALATION: "see",
}

RecordOf = Callable[[Pattern], Mapping[str, Any]]
"""The record of a pattern as it stands in its file; may raise `RalphdeckError`."""


@dataclass(frozen=True, slots=True)
class Merger:
    """What two patterns would be as one.

    Attributes:
        kept, other: The two, as they are.
        result: The kept one with the uses and the lineage of the other one.
        before: How the two stand now, the kept one first.
        after: How the result would stand.
        lineage: The life of the result.
    """

    kept: Pattern
    other: Pattern
    result: Pattern
    before: tuple[Assessment, Assessment]
    after: Assessment
    lineage: tuple[LineageEvent, ...]


@dataclass(frozen=True, slots=True)
class Forecast:
    """The effect of an answer.

    Attributes:
        answer: What the answer is called: `accept`, `reset`, `confirm`, `release`, `archive`, `merge`, `extract` or
            `see`, which changes nothing.
        running: How many running loops with a task were looked at.
        changed: Ids of those that would get another context.
        before, after: The context of the first of them (or, with no running loop, of the pattern's own topic).
        turned: Patterns whose state would differ, with the state before and after.
        merger: For a merge, what would come of it.
    """

    answer: str
    running: int
    changed: tuple[str, ...]
    before: str
    after: str
    turned: tuple[tuple[str, Maturity, Maturity], ...] = ()
    merger: Merger | None = None


def forecast(view: View, item: ReviewItem, record_of: RecordOf) -> Forecast:
    """Suppose that the question is answered with accept, and inject again.

    To revoke a burst changes nothing, its marks are held already: there it is supposed that they count. Nor does
    keeping what was extracted unattended: there it is supposed that it is archived. That somebody has seen an
    escalation changes no context.

    Raises:
        UnknownRecord: The pattern has gone.
        Refused: A record that would be merged stands where curation does not write.
    """
    if item.session is not None:
        return Forecast(answer=_ANSWERS[item.kind], running=0, changed=(), before="", after="")
    supposed = _supposed(view, item, record_of)
    running = [loop for loop in view.snapshot.loops.values() if loop.status.active and loop.task][:MAX_LOOPS]
    changed: list[str] = []
    shown: tuple[str, str] | None = None
    for loop in running:
        before, after = view.injection(loop.task).context, supposed.injection(loop.task).context
        if before != after:
            changed.append(loop.id)
            shown = shown or (before, after)
    if shown is None and not running and (topic := _topic(view, item)):
        shown = view.injection(topic).context, supposed.injection(topic).context
    before, after = shown or ("", "")
    return Forecast(
        answer=_ANSWERS.get(item.kind, "reset"),
        running=len(running),
        changed=tuple(changed),
        before=before,
        after=after,
        turned=tuple(_turned(view, supposed, item.burst.patterns if item.burst else (item.subject,))),
        merger=_merger(view, item, supposed) if item.kind == DUPLICATE else None,
    )


def _supposed(view: View, item: ReviewItem, record_of: RecordOf) -> View:
    """The view as it would be after the answer."""
    if item.burst is not None:
        return _confirmed(view, item.burst)
    if item.offer is not None:
        return _extracted(view, item.offer, record_of)
    pattern = view.pattern(item.subject)
    if item.kind == DUPLICATE:
        return _merged(view, pattern, view.pattern(item.other), record_of)
    if item.kind == QUARANTINE:
        return _released(view, pattern)
    if item.kind == EXTRACTED:
        return _supposing(view, gone=frozenset({pattern.id}))
    return _inverted(view, pattern, item.inversion) if item.inversion is not None else _reset(view, pattern)


def _topic(view: View, item: ReviewItem) -> str:
    """A task that the question is about, "" for a burst, which is about many."""
    if item.burst is not None:
        return ""
    if item.offer is not None:
        loop = view.snapshot.loops.get(item.subject)
        return loop.task if loop is not None else ""
    pattern = view.pattern(item.subject)
    return f"{pattern.title} {pattern.description}"


def _turned(view: View, supposed: View, about: Iterable[str]) -> Iterator[tuple[str, Maturity, Maturity]]:
    for id in about:
        if id in view.board and id in supposed.board:
            before, after = view.assessment(id).state, supposed.assessment(id).state
            if before is not after:
                yield id, before, after


def _confirmed(view: View, burst: Burst) -> View:
    curation = view.snapshot.curation
    verdict = BurstVerdict(
        verdict="confirmed", first=burst.first, last=burst.last, decision_id="", patterns=burst.patterns
    )
    bursts = {**curation.bursts, burst.source: (*curation.bursts.get(burst.source, ()), verdict)}
    return _supposing(view, curation=msgspec.structs.replace(curation, bursts=bursts))


def _inverted(view: View, pattern: Pattern, inversion: Inversion) -> View:
    assessment = view.assessment(pattern.id)
    anti_id = _supposed_id(PatternType.ANTI, inversion.slug)
    record = anti_pattern(pattern, assessment, inversion, inversion.text, anti_id, view.now)
    anti = as_pattern(record)
    curation = view.snapshot.curation
    verdict = InversionVerdict(verdict="accepted", at=view.now, anti_id=anti.id)
    pins = {pattern.id: _pin(view, pattern, Maturity.DEPRECATED), anti.id: _pin(view, anti, Maturity.ESTABLISHED)}
    curation = msgspec.structs.replace(
        curation, pins=curation.pins | pins, inversions=curation.inversions | {pattern.id: verdict}
    )
    return _supposing(view, {anti.id: anti}, curation, touched=frozenset({pattern.id}))


def _supposed_id(kind: PatternType, slug: str, number: int = 0) -> str:
    return _SUPPOSED_ID.format(ID_PREFIXES[kind], slug, number)


def _pin(view: View, pattern: Pattern, state: Maturity) -> Pin:
    return Pin(state=state, at=view.now, by="", reason="", content_hash=pattern.content_hash, decision_id="")


def _reset(view: View, pattern: Pattern) -> View:
    curation = view.snapshot.curation
    pins = {key: pin for key, pin in curation.pins.items() if key != pattern.id}
    curation = msgspec.structs.replace(curation, pins=pins)
    return _supposing(view, curation=curation, touched=frozenset({pattern.id}))


def _released(view: View, pattern: Pattern) -> View:
    curation = view.snapshot.curation
    arrival = curation.arrivals.get(pattern.id)
    if arrival is None:
        return view
    seen = msgspec.structs.replace(arrival, seen=arrival.seen | {pattern.content_hash})
    curation = msgspec.structs.replace(curation, arrivals=curation.arrivals | {pattern.id: seen})
    return _supposing(view, curation=curation, touched=frozenset({pattern.id}))


def _extracted(view: View, offer: Extraction, record_of: RecordOf) -> View:
    """New patterns in the registry, and further uses of known ones."""
    changed: dict[str, Pattern] = {}
    records: dict[str, dict[str, Any]] = {}
    for number, proposal in enumerate(offer.new):
        identifier = _supposed_id(proposal.type, proposal.slug, number)
        changed[identifier] = as_pattern(with_id(proposal.type, identifier, proposal.record))
    for proposal in offer.merges:
        known = view.pattern(proposal.duplicate_of)
        record = records.setdefault(known.id, dict(record_of(known)))
        record |= merged(record, proposal.record, known.type, view.now)
        changed[known.id] = _as_known(known, record)
    return _supposing(view, changed)


def _merged(view: View, kept: Pattern, other: Pattern, record_of: RecordOf) -> View:
    record = record_of(kept)
    result = _as_known(kept, {**record, **merged(record, record_of(other), kept.type, view.now)})
    return _supposing(view, {kept.id: result}, gone=frozenset({other.id}))


def _as_known(pattern: Pattern, record: Mapping[str, Any]) -> Pattern:
    """A changed record of a pattern as it will be read again."""
    found = as_read(record, pattern.type)
    return msgspec.structs.replace(found, file=pattern.file, pointer=pattern.pointer, mirrors=pattern.mirrors)


def _merger(view: View, item: ReviewItem, supposed: View) -> Merger:
    kept, other = view.pattern(item.subject), view.pattern(item.other)
    return Merger(
        kept=kept,
        other=other,
        result=supposed.pattern(kept.id),
        before=(view.assessment(kept.id), view.assessment(other.id)),
        after=supposed.assessment(kept.id),
        lineage=supposed.lineage(kept.id),
    )


def _supposing(
    view: View,
    changed: Mapping[str, Pattern] | None = None,
    curation: CurationState | None = None,
    *,
    gone: frozenset[str] = frozenset(),
    touched: frozenset[str] = frozenset(),
) -> View:
    """The view with some patterns added, changed or gone, and with other decisions.

    Args:
        touched: Further patterns whose state is another one then.
    """
    moved = frozenset(changed or ()) | gone
    patterns = {**view.snapshot.patterns, **(changed or {})}
    for id in gone:
        del patterns[id]
    snapshot = replace(view.snapshot, patterns=patterns, curation=curation or view.snapshot.curation)
    delta = Delta(patterns=moved | touched, decisions=True)
    board = view.board.updated(snapshot, delta, view.now)
    index = LazyIndex(patterns, view.index, moved) if moved else view.lazy_index
    return replace(view, snapshot=snapshot, board=board, lazy_index=index)
