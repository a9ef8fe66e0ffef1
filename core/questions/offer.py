"""Offers to extract from an ended loop, a recurring learning or an agent's note.

Find, ask, answer; docs/curation.md#offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime
from hashlib import blake2b
from itertools import islice
from operator import is_
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import RalphdeckError
from core.base.formatting import format_day, shorten_id
from core.base.scanning.verdict import describe_danger
from core.base.text import plural, visible_line
from core.decisions import commands
from core.index.review_items import LESSON, OFFER, RECURRING
from core.index.verdicts import StoredVerdicts, digest_of, read_in_steps, read_verdicts, write_in_steps, write_verdicts
from core.questions.answer import Answer, dismissal, no, reject_lesson, yes
from core.questions.asking import JoinedOffer, RecurringLearning
from core.questions.impact import UNSEEN_USES
from core.records.decisions import REJECT, VERBS, Verb, lesson_question_id
from core.records.extractions import Extraction
from core.records.loops import HOOKS, Outcome
from core.records.patterns import Pattern
from core.records.reflections import LessonKind, LessonState

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.questions.extraction.extractor import Extractor
    from core.questions.extraction.learnings import Cluster
    from core.records.reflections import JoinedLesson
    from core.records.snapshot import Snapshot


JUDGED_AT_ONCE: Final = 20  # Last finished loops that each search judges, and the most that one judges.
MOST_JUDGED: Final = 200  # Last finished loops that are judged when idle, and whose verdicts are used.
_MOST_RENEWED: Final = 10  # Best offers that are compared again with a changed registry, before they are asked about.
_OFFER: Final = "offer"
LoadExtractor = Callable[[], "Steps[Extractor]"]
"""Returns what extracts patterns, when its modules are imported."""
Extract = Callable[[str, "ProjectState"], Extraction]
"""Extracts from a loop; raises RalphdeckError."""


class LoopVerdict(Struct, frozen=True, array_like=True):
    """What a loop offers, by digests of its record and of the registry.

    `found` is None if the loop proposes nothing, whatever the registry has.
    """

    record: bytes
    registry: bytes
    found: Extraction | None = None


class FoundOffers(Struct, frozen=True):
    """The possible extractions by loop, newest first.

    `judged` has the verdicts on the last loops that ended, `offered` the loops that have offered something, `removed`
    the offers from which patterns were extracted since. `registry` is that of the last search, with its digest.
    `is_done` is whether the last `JUDGED_AT_ONCE` loops were judged, `is_whole` whether `MOST_JUDGED` were.
    """

    offers: Mapping[str, Extraction] = {}
    judged: Mapping[str, LoopVerdict] = {}
    offered: Set[str] = frozenset()
    removed: Mapping[str, Extraction] = {}
    registry: tuple[Mapping[str, Pattern] | None, bytes] = (None, b"")
    is_done: bool = False
    is_whole: bool = False

    def forget(self, loop_id: str) -> FoundOffers:
        """Return the offers of which that of a loop is made again."""
        verdict = self.judged.get(loop_id)
        if verdict is None:
            return self
        return replace(self, judged={**self.judged, loop_id: replace(verdict, registry=b"")}, is_done=False)

    def without(self, loop_id: str) -> FoundOffers:
        """Return the offers without that of a loop that was extracted."""
        if loop_id not in self.offers:
            return self
        offers = {id: offer for id, offer in self.offers.items() if id != loop_id}
        return replace(self, offers=offers, removed={**self.removed, loop_id: self.offers[loop_id]})

    def restored(self, loop_id: str) -> FoundOffers:
        """Return the offers with the one that `without` removed."""
        if loop_id not in self.removed:
            return self
        removed = {id: offer for id, offer in self.removed.items() if id != loop_id}
        return replace(self, offers={loop_id: self.removed[loop_id], **self.offers}, removed=removed)


def find_offers(
    view: ProjectState, before: FoundOffers, stored: StoredVerdicts, load: LoadExtractor, extract: Extract, most: int
) -> Steps[FoundOffers]:
    """Judge some of the last `most` ended loops, newest first; recall older verdicts.

    Then the best offers are compared again with a registry that has changed. A loop from which nothing can be
    extracted offers nothing.
    """
    settings = view.settings.extraction
    if not settings.enabled:
        return FoundOffers(is_done=True, is_whole=True)
    loops = yield from _choose_loops(view)
    patterns = view.snapshot.patterns
    registry = before.registry[1] if before.registry[0] is patterns else (yield from _digest_registry(patterns))
    judged = yield from _recall(loops, before, stored)
    removed, offered = dict(before.removed), set(before.offered)
    new: dict[str, LoopVerdict] = {}
    offers, best = dict[str, Extraction](), list[str]()
    for count in range(JUDGED_AT_ONCE + 1):
        offers_before, offers = offers, _choose_offers(loops, judged, removed)
        offered |= offers.keys()
        next_id = next((id for id in islice(loops, most) if id not in judged), None)
        outdated = {id for id, one in judged.items() if one.found is not None and one.registry != registry}
        if next_id is None and outdated:
            if offers != offers_before or not best:
                best = [one.sources[0] for one in join_offers(offers, settings.similarity_threshold)[:_MOST_RENEWED]]
            newest = offered.union(islice(loops, JUDGED_AT_ONCE))
            without_offer = (id for id in loops if id in newest and id not in offers)
            next_id = next((id for id in (*best, *without_offer) if id in outdated), None)
        if next_id is None or count == JUDGED_AT_ONCE:
            break
        yield from (yield from load()).prepare_in_steps(view)
        judged[next_id] = LoopVerdict(loops[next_id], registry)
        with suppress(RalphdeckError):
            extraction = extract(next_id, view)
            judged[next_id] = new[next_id] = LoopVerdict(
                loops[next_id], registry, extraction if extraction.proposals else None
            )
        removed.pop(next_id, None)
        yield
    yield from write_in_steps(stored, _OFFER, new)
    is_older = most > JUDGED_AT_ONCE
    return FoundOffers(
        offers=before.offers if offers == before.offers else offers,
        judged={id: judged[id] for id in loops if id in judged},
        offered=frozenset(offered),
        removed=removed,
        registry=(patterns, registry),
        is_done=is_older or next_id is None,
        is_whole=is_older and next_id is None,
    )


def _choose_loops(view: ProjectState) -> Steps[dict[str, bytes]]:
    """Return the digests of the last `MOST_JUDGED` ended loops, newest first, by ID."""
    loops, chosen = view.snapshot.loops, dict[str, bytes]()
    hooks_extract = view.settings.extraction.auto_extract_on_completion  # from the tasks of a session when they end
    for id in loops:
        loop = loops[id]
        if loop.status.ended and not (hooks_extract and HOOKS in loop.sources):
            chosen[id] = digest_of(loop)
        if len(chosen) == MOST_JUDGED:
            break
        yield
    return chosen


def _recall(loops: Mapping[str, bytes], before: FoundOffers, stored: StoredVerdicts) -> Steps[dict[str, LoopVerdict]]:
    """Return the verdicts on loops that have not changed since."""
    judged = {id: one for id, one in before.judged.items() if one.record == loops.get(id)}
    recalled = yield from read_in_steps(stored, _OFFER, [id for id in loops if id not in judged], LoopVerdict)
    return judged | {id: one for id, one in recalled.items() if one.record == loops[id]}


def _choose_offers(
    loops: Iterable[str], judged: Mapping[str, LoopVerdict], removed: Collection[str]
) -> dict[str, Extraction]:
    offers = {id: judged[id].found for id in loops if id in judged and id not in removed}
    return {id: offer for id, offer in offers.items() if offer is not None and (offer.new or offer.merges)}


def join_offers(offers: Mapping[str, Extraction], threshold: float) -> tuple[JoinedOffer, ...]:
    """Join each offer with one that contains it; return those of most loops first.

    `offers` are by loop, newest first, and `sources` of each result begins with the loop whose offer is kept.

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
    joined = [
        JoinedOffer(offers[head], (head, *sorted(others, key=newest_first.__getitem__)))
        for head, (_, *others) in sources.items()
    ]
    return tuple(sorted(joined, key=lambda one: (-_expected_uses(one), newest_first[one.sources[0]])))


def _expected_uses(joined: JoinedOffer) -> float:
    """Return the number of uses that the patterns of an offer would have had."""
    return (len(joined.sources) + UNSEEN_USES) * len(joined.offer.new)


def ask_offers(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about extraction offers; loops with the same lessons are one question."""
    for joined in asker.found.offers:
        offer, (source_id, *others) = joined.offer, joined.sources
        count = plural(len(offer.new), "lesson") if offer.new else plural(len(offer.merges), "further use")
        also = f"; {plural(len(others), 'other session')} offered the same" if others else ""
        yield asker.item(
            OFFER,
            source_id,
            question=f"{count} found in {{}}. Keep {'it' if len(offer.new) == 1 else 'them'}?",
            this="this session",
            reason=f"{offer_text(offer)}{also}",
            place="",
            impact=asker.new_text_impact(_expected_uses(joined)),
            chars=chars_offered(offer),
            further=len(offer.new) - 1,
            offer=offer,
            evidence=len(offer.new) + len(offer.merges) + len(others),
            sources=joined.sources,
        )


def offer_text(offer: Extraction) -> str:
    """Describe an offer: `3 new lessons, 1 further use of known lessons`."""
    new, further = len(offer.new), len(offer.merges)
    parts = [plural(new, "new lesson")] if new else []
    parts += [f"{plural(further, 'further use')} of known lessons"] if further else []
    return ", ".join(parts)


def chars_offered(offer: Extraction) -> int:
    """Return the number of characters to read before an extraction."""
    return sum(len(one.headline) for one in (*offer.new, *offer.merges))


def answer_offer(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which adds the lessons of a loop or of a recurring learning, and no."""
    assert item.offer is not None
    label = VERBS[Verb.EXTRACT].word if item.kind == OFFER else "create"
    yield yes(label, f"adds {offer_text(item.offer)}", commands.Extract(item.subject, expected=item.offer))
    summary = f"nothing is extracted from {visible_line(item.subject, 80)}"
    yield dismissal(item, "reject", "never", summary, "nothing is added")


MOST_RECURRING: Final = 20  # Maximum number of recurring learnings that are checked, those of most loops first.
_MAX_TEXT: Final = 80  # Characters of a learning that a question shows.
_READ_AT_ONCE: Final = 64  # Records whose digest is computed in one step.
_RECURRING: Final = "recurring"
_KEY: Final = "all"
_Digests = tuple[bytes, bytes]


class RecurringVerdict(Struct, frozen=True, array_like=True):
    """The learnings to ask about, and the sources of all that were checked.

    `learnings` and `registry` are digests of the records that they were found in, and of the patterns that they were
    compared with.
    """

    learnings: bytes
    registry: bytes
    sources: tuple[str, ...]
    found: tuple[tuple[RecurringLearning, Extraction], ...]


class RecurringLearnings(Struct, frozen=True):
    """Learnings to ask about, with candidate patterns and the records behind them.

    `tasks` has those of the loops that reported the learnings that were checked.
    """

    found: tuple[tuple[RecurringLearning, Extraction], ...] = ()
    tasks: Mapping[str, str] = {}
    records: tuple[object, ...] = ()
    loop_ids: Set[str] = frozenset()

    def are_those_of(self, snapshot: Snapshot) -> bool:
        """Return whether the same learnings recur and the same patterns cover them."""
        records, loops = _records_of(snapshot), snapshot.loops
        if len(self.records) != len(records) or not all(map(is_, self.records, records)):
            return False
        return self.loop_ids == set(loops) and all(loops[id].task == task for id, task in self.tasks.items())


def find_recurring(
    view: ProjectState, before: RecurringLearnings, stored: StoredVerdicts, load: LoadExtractor
) -> Steps[RecurringLearnings]:
    """Find learnings that several loops reported and no pattern covers."""
    snapshot = view.snapshot
    if not view.settings.extraction.enabled or before.are_those_of(snapshot):
        return before
    digests = yield from _read_in_steps(snapshot)
    verdict = read_verdicts(stored, _RECURRING, [_KEY], RecurringVerdict).get(_KEY)
    if verdict is None or (verdict.learnings, verdict.registry) != digests:
        extractor = yield from load()
        clusters = (yield from extractor.find_recurring_in_steps(snapshot))[:MOST_RECURRING]
        if clusters:
            yield from extractor.prepare_in_steps(view)
        drafted = []
        for cluster in clusters:
            with suppress(RalphdeckError):
                offer = extractor.extract_cluster(cluster, view)
                if offer.new:
                    drafted.append((_describe_learning(cluster), offer))
            yield
        sources = sorted({source for cluster in clusters for source in cluster.sources})
        verdict = RecurringVerdict(*digests, tuple(sources), tuple(drafted))
        write_verdicts(stored, _RECURRING, {_KEY: verdict})
    loops = snapshot.loops
    tasks = {id: loop.task for id in verdict.sources if (loop := loops.get(id)) is not None}
    return RecurringLearnings(verdict.found, tasks, _records_of(snapshot), frozenset(loops))


def _describe_learning(cluster: Cluster) -> RecurringLearning:
    times = tuple(member.reflection.at for member in cluster.members)
    text = visible_line(cluster.text, _MAX_TEXT)  # masks secrets
    return RecurringLearning(cluster.id, text, len(cluster.text), len(cluster.sources), times)


def _records_of(snapshot: Snapshot) -> tuple[object, ...]:
    return snapshot.reflections, snapshot.patterns, snapshot.tasks, snapshot.memory_tasks


def _read_in_steps(snapshot: Snapshot) -> Steps[_Digests]:
    """Return digests of the learnings (with their links to loops) and the registry.

    Error messages, with which triggers are compared, are left out: each run may record one.
    """
    learnings: Sequence[Iterable[object]] = (
        snapshot.reflections.values(),
        ((one.id, one.aliases, one.task) for one in snapshot.loops.values()),
        ((one.id, one.loop_id, one.tags, one.description) for one in snapshot.tasks.values()),
        ((one.id, one.tags, one.description) for one in snapshot.memory_tasks.values()),
    )
    return (yield from _digest_in_steps(learnings)), (yield from _digest_registry(snapshot.patterns))


def _digest_registry(patterns: Mapping[str, Pattern]) -> Steps[bytes]:
    registry = ((one.id, one.content_hash, len(one.source_loops)) for one in patterns.values())
    return (yield from _digest_in_steps([registry]))


def _digest_in_steps(parts: Iterable[Iterable[object]]) -> Steps[bytes]:
    digest, encode = blake2b(digest_size=16), msgspec.msgpack.encode
    for records in parts:
        remaining = iter(records)
        while batch := tuple(islice(remaining, _READ_AT_ONCE)):
            digest.update(encode(batch))
            yield
        digest.update(b"\0")
    return digest.digest()


def ask_recurring(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about learnings that several loops reported and no pattern covers."""
    now, half_life = asker.board.now, asker.settings.maturity.half_life_days
    for learning, offer in asker.found.recurring:
        times = [at for at in learning.times if at is not None]
        ages = [max((now - at).days, 0) for at in times]
        sources = plural(learning.sources, "session")
        last = f", last on {format_day(max(times))}" if times else ""
        yield asker.item(
            RECURRING,
            learning.id,
            question=f"{sources} reported {{}}. Make it a lesson?",
            name=f"“{learning.text}”",
            this="the same",
            reason="no lesson contains it",
            place=f"reported {plural(len(learning.times), 'time')}{last}",
            impact=asker.new_text_impact(float(np.exp2(-np.array(ages, np.float64) / half_life).sum())),
            chars=learning.chars + chars_offered(offer),
            offer=offer,
            evidence=len(learning.times),
        )


MOST_LESSONS: Final = 20  # Maximum number of lessons that are asked about at a time.
_MOST_TRIED: Final = 200  # Lessons from which patterns are drafted in one search.
_MOST_CITED: Final = 1000  # More citations of a lesson make no difference.


def find_lessons(view: ProjectState, load: LoadExtractor) -> Steps[tuple[tuple[JoinedLesson, Extraction], ...]]:
    """Find the lessons to ask about with candidate patterns, most useful first."""
    if not view.snapshot.lessons or not view.settings.extraction.enabled:
        return ()
    extractor = yield from load()
    lessons = yield from extractor.find_lessons_in_steps(view)
    chosen = _choose(lessons, view)
    if chosen:
        yield from extractor.prepare_in_steps(view)
    offers: list[tuple[JoinedLesson, Extraction]] = []
    for joined in chosen:
        with suppress(RalphdeckError):
            offer = extractor.extract_lesson(joined, view)
            if offer.new:
                offers.append((joined, offer))
        if len(offers) == MOST_LESSONS:
            break
        yield
    return tuple(offers)


def _choose(lessons: Sequence[JoinedLesson], view: ProjectState) -> list[JoinedLesson]:
    """Return the open lessons without snoozed questions, most useful first."""
    half_life, verdicts = view.settings.maturity.half_life_days, view.snapshot.curation.inversions
    chosen = []
    for lesson in lessons:
        if lesson.state is LessonState.OPEN and lesson.lesson.kind is not LessonKind.FACT:
            verdict = verdicts.get(lesson_question_id(lesson.lesson.text))
            if verdict is None or not verdict.is_snoozed(view.now, len(lesson.places)):
                chosen.append(lesson)
    chosen.sort(key=lambda one: (not one.is_contradicted, -lesson_weight(one, view.now, half_life), one.id))
    return chosen[:_MOST_TRIED]


def lesson_weight(joined: JoinedLesson, now: datetime, half_life_days: float) -> float:
    """Return the (decayed) number of uses that a lesson is as good as.

    Each place counts; more if the work succeeded, if the agent loads it, or if agents cited it; and once if an approved
    pattern or another lesson contradicts it.
    """
    weight = float(joined.is_contradicted)
    for place in joined.places:
        age = max((now - place.at).total_seconds(), 0.0) / 86_400 if place.at is not None else half_life_days
        cited = math.log2(1 + min(place.uses or 0, _MOST_CITED))
        weight += (1 + (place.outcome is Outcome.SUCCESS) + place.loaded + cited) * 2 ** (-age / half_life_days)
    return weight


def ask_lessons(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about lessons that agents wrote down, of which a pattern can be made."""
    offers, half_life = asker.found.lessons, asker.settings.maturity.half_life_days
    weights = [lesson_weight(one, asker.board.now, half_life) for one, _ in offers]
    top = max(weights, default=0.0)
    for (joined, offer), weight in zip(offers, weights, strict=True):
        lesson = joined.lesson
        does = describe_danger(lesson.text, asker.settings)
        parts = [f"written down by {visible_line(', '.join(joined.runners), 60)}", does and f"this text {does}"]
        if joined.contradicts:
            parts.append(f"contradicts {shorten_id(joined.contradicts[0])}")
        if joined.disagrees_with:
            parts.append(f"contradicts {plural(len(joined.disagrees_with), 'other lesson')}")
        cited = f", cited {plural(joined.uses, 'time')}" if joined.uses else ""
        loaded = ", loaded by the agent" if joined.is_loaded else ""
        yield asker.item(
            LESSON,
            joined.id,
            question="Make {} a lesson for all agents?",
            name=f"the note “{visible_line(lesson.text, 80)}”",
            this="this note of an agent",
            reason="; ".join(filter(None, parts)),
            place=f"in {plural(len(joined.places), 'place')}{loaded}{cited}",
            impact=asker.new_text_impact(UNSEEN_USES * (weight + top * joined.is_contradicted)),
            chars=len(lesson.text) + len(lesson.why) + chars_offered(offer),
            offer=offer,
            lesson=joined,
            evidence=len(joined.places),
        )


def answer_lesson(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which makes a pattern of the note, and no, which rejects it."""
    assert item.offer is not None and item.lesson is not None
    yield yes("create", f"adds {offer_text(item.offer)}", commands.Extract(item.subject, expected=item.offer))
    yield no(REJECT.word, "nothing is added", reject_lesson(item.lesson), matters=False)
