"""Whether a note that an agent wrote down becomes a lesson: find it, weigh it, ask, answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from core.base.formatting import shorten_id
from core.base.scanning.verdict import describe_danger
from core.base.text import plural, visible_line
from core.decisions import commands
from core.index.review_items import LESSON
from core.questions.answer import Answer, no, reject_lesson, yes
from core.questions.impact import UNSEEN_USES
from core.questions.offer import chars_offered, offer_text
from core.records.decisions import REJECT, lesson_question_id
from core.records.loops import Outcome
from core.records.reflections import LessonKind, LessonState

if TYPE_CHECKING:
    from core.base.steps import Steps
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.questions.asking import Asker
    from core.questions.offer import LoadExtractor
    from core.records.extractions import Extraction
    from core.records.reflections import JoinedLesson

MOST_LESSONS: Final = 20  # Maximum number of lessons that are asked about at a time.
_MOST_TRIED: Final = 200  # Lessons from which patterns are drafted in one search.
_MOST_CITED: Final = 1000  # More citations of a lesson make no difference.


def find_lessons(view: ProjectState, load: LoadExtractor) -> Steps[tuple[tuple[JoinedLesson, Extraction], ...]]:
    """Find the lessons to ask about, most useful first, each with its candidate pattern."""
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
    """Return the open lessons, most useful first, without those whose question is snoozed."""
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
