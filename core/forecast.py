"""What an answer in Review would change for the loops that run now, worked out before anything is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from core.curation.review import ReviewItem
from core.curation.rules import anti_pattern, as_pattern
from core.deck import View
from core.learning.bursts import Burst
from core.learning.proposing import Inversion
from core.records.decisions import BurstVerdict, CurationState, InversionVerdict, Pin
from core.records.patterns import Maturity, Pattern
from core.retrieval.index import LazyIndex
from core.snapshot import Delta

MAX_LOOPS: Final = 20
"""Running loops that are looked at, newest first."""
_SUPPOSED_ID: Final = "pat-anti-{}-000"
"""The id of an anti-pattern that does not exist yet; the context does not show it."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The effect of an answer.

    Attributes:
        answer: What the answer is called: `accept`, `reset` or `confirm`.
        running: How many running loops with a task were looked at.
        changed: Ids of those that would get another context.
        before, after: The context of the first of them (or, with no running loop, of the pattern's own topic).
        turned: Patterns whose state would differ, with the state before and after.
    """

    answer: str
    running: int
    changed: tuple[str, ...]
    before: str
    after: str
    turned: tuple[tuple[str, Maturity, Maturity], ...] = ()


def forecast(view: View, item: ReviewItem) -> Forecast:
    """Suppose that the question is answered with accept, and inject again.

    To revoke a burst changes nothing, its marks are held already: there it is supposed that they count.
    """
    if item.burst is not None:
        answer, about, supposed = "confirm", item.burst.patterns, _confirmed(view, item.burst)
    else:
        pattern = view.pattern(item.subject)
        answer, about = "accept" if item.inversion else "reset", (pattern.id,)
        supposed = _inverted(view, pattern, item.inversion) if item.inversion else _reset(view, pattern)
    running = [loop for loop in view.snapshot.loops.values() if loop.status.active and loop.task][:MAX_LOOPS]
    changed: list[str] = []
    shown: tuple[str, str] | None = None
    for loop in running:
        before, after = view.injection(loop.task).context, supposed.injection(loop.task).context
        if before != after:
            changed.append(loop.id)
            shown = shown or (before, after)
    if shown is None and not running and item.burst is None:
        topic = f"{pattern.title} {pattern.description}"
        shown = view.injection(topic).context, supposed.injection(topic).context
    before, after = shown or ("", "")
    return Forecast(answer, len(running), tuple(changed), before, after, tuple(_turned(view, supposed, about)))


def _turned(view: View, supposed: View, about: Iterable[str]) -> Iterator[tuple[str, Maturity, Maturity]]:
    for id in about:
        if id in view.board:
            before, after = view.assessment(id).state, supposed.assessment(id).state
            if before is not after:
                yield id, before, after


def _confirmed(view: View, burst: Burst) -> View:
    curation = view.snapshot.curation
    verdict = BurstVerdict(
        verdict="confirmed", first=burst.first, last=burst.last, decision_id="", patterns=burst.patterns
    )
    bursts = {**curation.bursts, burst.source: (*curation.bursts.get(burst.source, ()), verdict)}
    return _supposing(view, {}, msgspec.structs.replace(curation, bursts=bursts), frozenset())


def _inverted(view: View, pattern: Pattern, inversion: Inversion) -> View:
    assessment = view.assessment(pattern.id)
    record = anti_pattern(pattern, assessment, inversion, inversion.text, _SUPPOSED_ID.format(inversion.slug), view.now)
    anti = as_pattern(record)
    curation = view.snapshot.curation
    verdict = InversionVerdict(verdict="accepted", at=view.now, anti_id=anti.id)
    pins = {pattern.id: _pin(view, pattern, Maturity.DEPRECATED), anti.id: _pin(view, anti, Maturity.ESTABLISHED)}
    return _supposing(
        view,
        {anti.id: anti},
        msgspec.structs.replace(
            curation, pins=curation.pins | pins, inversions=curation.inversions | {pattern.id: verdict}
        ),
        frozenset({anti.id, pattern.id}),
    )


def _pin(view: View, pattern: Pattern, state: Maturity) -> Pin:
    return Pin(state=state, at=view.now, by="", reason="", content_hash=pattern.content_hash, decision_id="")


def _reset(view: View, pattern: Pattern) -> View:
    curation = view.snapshot.curation
    pins = {key: pin for key, pin in curation.pins.items() if key != pattern.id}
    return _supposing(view, {}, msgspec.structs.replace(curation, pins=pins), frozenset({pattern.id}))


def _supposing(view: View, added: dict[str, Pattern], curation: CurationState, touched: frozenset[str]) -> View:
    patterns = {**view.snapshot.patterns, **added}
    snapshot = replace(view.snapshot, patterns=patterns, curation=curation)
    delta = Delta(patterns=touched, decisions=True)
    board = view.board.updated(snapshot, delta, view.now)
    index = LazyIndex(patterns, view.index, touched) if added else view.lazy_index
    return replace(view, snapshot=snapshot, board=board, lazy_index=index)
