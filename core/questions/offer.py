"""Whether to add what can be extracted from a loop that ended: find it, ask, answer; docs/curation.md#offers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.base.errors import RalphdeckError
from core.base.text import plural, visible_line
from core.curation import commands
from core.index.verdicts import StoredVerdicts, digest_of, read_verdicts, write_verdicts
from core.questions.answer import Answer, dismissal, yes
from core.questions.impact import UNSEEN_USES
from core.records.agent_sessions import HOOKS
from core.records.decisions import VERBS, Verb
from core.records.extractions import Extraction
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.config.settings import ExtractionSettings
    from core.extraction.offers import Offers
    from core.questions.priority import ImpactEstimator
    from core.records.loops import Loop
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

JUDGED_AT_ONCE: Final = 20  # Last finished loops that each search judges.
MOST_JUDGED: Final = 200  # Last finished loops that are judged when idle, and whose verdicts are used.
_MOST_RENEWED: Final = 10  # Best offers that are compared again with a changed registry, before they are asked about.
_WRITTEN_AT_ONCE: Final = 20  # Verdicts that are stored at once.
_STEP_SECONDS: Final = 0.01  # Time in which indexes are built at once.
_KIND: Final = "offer"
_NOTHING: Final = None, None
LoadOffers = Callable[[], "Steps[Offers]"]
"""Returns what extracts patterns, when its modules are imported."""


class LoopVerdict(Struct, frozen=True, array_like=True):
    """What can be extracted from a loop: from its record and a registry with these digests.

    `found` is None if the loop proposes nothing, whatever the registry has.
    """

    record: bytes
    registry: bytes
    found: Extraction | None = None


class JoinedOffer(Struct, frozen=True):
    """An offer, and the IDs of all loops that offer nothing else, its own first."""

    offer: Extraction
    sources: tuple[str, ...]


class OfferSearch:
    """Judges loops that ended, newest first, one in a step; not thread-safe.

    `offers` has the possible extractions by loop, newest first.
    """

    def __init__(self, settings: ExtractionSettings, stored: StoredVerdicts) -> None:
        self.offers: Mapping[str, Extraction] = MappingProxyType({})
        self._settings = settings
        self._stored = stored
        self._loops: Mapping[str, Loop] | None = None  # those that the candidates were chosen from
        self._candidates: tuple[Loop, ...] = ()
        self._judged: dict[str, tuple[Loop, Extraction | None]] = {}
        self._outdated: set[str] = set()  # loops that were compared with another registry
        self._offered: set[str] = set()  # loops that have offered something
        self._removed: set[str] = set()  # loops that were extracted since they were judged
        self._new: dict[str, LoopVerdict] = {}  # verdicts that are not stored yet
        self._registry: tuple[Mapping[str, Pattern] | None, bytes] = None, b""
        self._joined: tuple[Mapping[str, Extraction], tuple[JoinedOffer, ...]] = self.offers, ()

    def recall(self, offers: Mapping[str, Extraction], joined: tuple[JoinedOffer, ...]) -> None:
        """Begin with the offers that were found before."""
        self.offers = MappingProxyType(offers)
        self._offered |= offers.keys()
        self._joined = self.offers, joined

    @property
    def joined(self) -> tuple[JoinedOffer, ...]:
        """The offers, each with all loops that offer the same; best first."""
        if self._joined[0] is not self.offers:
            self._joined = self.offers, join_offers(self.offers, self._settings.similarity_threshold)
        return self._joined[1]

    def forget_comparisons(self) -> None:
        """Compare the offers with the registry again, since it changed."""
        self._outdated |= {id for id, (_, found) in self._judged.items() if found is not None} | self._removed

    def forget(self, loop_id: str) -> None:
        """Judge a loop again."""
        self._outdated.add(loop_id)

    def remove(self, loop_id: str) -> None:
        """Remove the offer of a loop that was extracted."""
        if loop_id in self.offers:
            self._removed.add(loop_id)
            self.offers = MappingProxyType({id: offer for id, offer in self.offers.items() if id != loop_id})

    def restore(self, loop_id: str) -> None:
        """Offer again what `remove` removed."""
        if loop_id in self._removed:
            self._removed.discard(loop_id)
            self._show()

    def look(
        self,
        snapshot: Snapshot,
        extract: Callable[[str], Extraction],
        prepare: Callable[[float], bool],
        *,
        is_idle: bool = False,
    ) -> bool | None:
        """Do one step; whether `offers` changed, None if nothing is left to judge.

        If `extract` raises `RalphdeckError`, a loop offers nothing. `prepare` works for some seconds on what `extract`
        needs, and returns whether it is ready. Loops that are older than the last `JUDGED_AT_ONCE` are judged if
        `is_idle`; before, only their stored verdicts are used.
        """
        if self._loops is not snapshot.loops:
            return self._follow(snapshot)
        loop = self._next_loop(JUDGED_AT_ONCE if not is_idle else MOST_JUDGED)
        if loop is None or len(self._new) >= _WRITTEN_AT_ONCE:
            write_verdicts(self._stored, _KIND, self._new)
            self._new = {}
            return None if loop is None else False
        return self._judge(loop, snapshot, extract) if prepare(_STEP_SECONDS) else False

    def _follow(self, snapshot: Snapshot) -> bool:
        """Choose the candidates, and use the stored verdicts of those that were not judged yet."""
        self._loops = snapshot.loops
        ended = (loop for loop in snapshot.loops.values() if loop.status.ended and not self._is_extracted(loop))
        self._candidates = tuple(islice(ended, MOST_JUDGED)) if self._settings.enabled else ()
        known = {loop.id: self._judged[loop.id] for loop in self._candidates if loop.id in self._judged}
        self._judged = {loop.id: known[loop.id] for loop in self._candidates if known.get(loop.id, _NOTHING)[0] is loop}
        unknown = {loop.id: loop for loop in self._candidates if loop.id not in self._judged}
        for id, verdict in read_verdicts(self._stored, _KIND, unknown, LoopVerdict).items():
            if verdict.record == digest_of(unknown[id]):
                self._judged[id] = unknown[id], verdict.found
                if verdict.found is not None and verdict.registry != self._registry_digest(snapshot.patterns):
                    self._outdated.add(id)
        self._outdated &= self._judged.keys()
        return self._show()

    def _next_loop(self, most: int) -> Loop | None:
        """Return a loop that was not judged, or whose comparison with the registry matters."""
        for loop in islice(self._candidates, most):
            if loop.id not in self._judged:
                return loop
        if not self._outdated:
            return None
        best = [one.sources[0] for one in self.joined[:_MOST_RENEWED]]
        newest = {loop.id for loop in self._candidates[:JUDGED_AT_ONCE]} | self._offered
        without_offer = (loop.id for loop in self._candidates if loop.id in newest and loop.id not in self.offers)
        return next((self._judged[id][0] for id in (*best, *without_offer) if id in self._outdated), None)

    def _judge(self, loop: Loop, snapshot: Snapshot, extract: Callable[[str], Extraction]) -> bool:
        found: Extraction | None = None
        with suppress(RalphdeckError):
            extraction = extract(loop.id)
            found = extraction if extraction.proposals else None
            self._new[loop.id] = LoopVerdict(digest_of(loop), self._registry_digest(snapshot.patterns), found)
        self._judged[loop.id] = loop, found
        self._outdated.discard(loop.id)
        self._removed.discard(loop.id)
        return self._show()

    def _show(self) -> bool:
        """Update the offers; whether they changed."""
        judged = ((loop.id, self._judged.get(loop.id, _NOTHING)[1]) for loop in self._candidates)
        left = ((id, found) for id, found in judged if found is not None and id not in self._removed)
        offers = {id: found for id, found in left if found.new or found.merges}
        self._offered |= offers.keys()
        has_changed = offers != self.offers
        if has_changed:
            self.offers = MappingProxyType(offers)
        return has_changed

    def _registry_digest(self, patterns: Mapping[str, Pattern]) -> bytes:
        if self._registry[0] is not patterns:
            self._registry = (
                patterns,
                digest_of([(id, one.content_hash, len(one.source_loops)) for id, one in patterns.items()]),
            )
        return self._registry[1]

    def _is_extracted(self, loop: Loop) -> bool:
        """Return whether hooks extract from the tasks of a session when they end."""
        return HOOKS in loop.sources and self._settings.auto_extract_on_completion


def join_offers(offers: Mapping[str, Extraction], threshold: float) -> tuple[JoinedOffer, ...]:
    """Join the offers that contain nothing but what another one contains, newest first; those of most loops first.

    New patterns are the same if the similarity of their headlines, 0..1, is above `threshold`; further uses if they are
    uses of the same pattern.
    """
    from core.retrieval.similarity import TextPool, sorted_words

    pool, owners = TextPool(), list[str]()  # the headlines of the joined offers, and the loop of each
    sources: dict[str, list[str]] = {}
    for id, offer in sorted(offers.items(), key=lambda pair: -len(pair[1].new) - len(pair[1].merges)):
        if not offer.new and not offer.merges:
            continue
        lessons = [sorted_words(f"{one.type} {one.headline}") for one in offer.new]
        holding = None
        for words in lessons:
            alike = {owners[row] for row, _ in pool.find_similar(words, threshold)}
            holding = alike if holding is None else holding & alike
        uses = {one.duplicate_of for one in offer.merges}
        candidates = sources if holding is None else [other for other in sources if other in holding]
        head = next((one for one in candidates if uses <= {merge.duplicate_of for merge in offers[one].merges}), id)
        sources.setdefault(head, []).append(id)
        if head == id:
            for words in lessons:
                pool.add(words)
                owners.append(id)
    newest_first = {id: number for number, id in enumerate(offers)}
    found = [
        JoinedOffer(offers[head], (head, *sorted(others, key=newest_first.__getitem__)))
        for head, (_, *others) in sources.items()
    ]
    return tuple(sorted(found, key=lambda one: (-_expected_uses(one), newest_first[one.sources[0]])))


def _expected_uses(joined: JoinedOffer) -> float:
    """Return the number of uses that the patterns of an offer would have had."""
    return (len(joined.sources) + UNSEEN_USES) * len(joined.offer.new)


def offered(scales: ImpactEstimator, offers: Iterable[JoinedOffer]) -> Iterator[ReviewItem]:
    """Ask about extraction offers; loops that offer the same lessons are one question."""
    for joined in offers:
        offer, (source_id, *others) = joined.offer, joined.sources
        also = f"; {plural(len(others), 'other session')} offered the same" if others else ""
        yield scales.item(
            kinds.OFFER,
            source_id,
            question=f"{_lessons_found(offer)} found in {{}}. Keep {'it' if len(offer.new) == 1 else 'them'}?",
            this="this session",
            reason=f"{offer_text(offer)}{also}",
            place="",
            impact=scales.new(_expected_uses(joined)),
            chars=chars_offered(offer),
            further=len(offer.new) - 1,
            offer=offer,
            evidence=len(offer.new) + len(offer.merges) + len(others),
            sources=joined.sources,
        )


def _lessons_found(offer: Extraction) -> str:
    return plural(len(offer.new), "lesson") if offer.new else plural(len(offer.merges), "further use")


def offer_text(offer: Extraction) -> str:
    """Describe an offer: `3 new lessons, 1 further use of known lessons`."""
    new, further = len(offer.new), len(offer.merges)
    parts = [plural(new, "new lesson")] if new else []
    parts += [f"{plural(further, 'further use')} of known lessons"] if further else []
    return ", ".join(parts)


def chars_offered(offer: Extraction) -> int:
    """Return the number of characters to read before an extraction."""
    return sum(len(one.headline) for one in (*offer.new, *offer.merges))


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which adds the lessons of a loop or of a recurring learning, and no."""
    assert item.offer is not None
    label = VERBS[Verb.EXTRACT].word if item.kind == kinds.OFFER else "create"
    yield yes(label, f"adds {offer_text(item.offer)}", commands.Extract(item.subject, expected=item.offer))
    summary = f"nothing is extracted from {visible_line(item.subject, 80)}"
    yield dismissal(item, "reject", "never", summary, "nothing is added")
