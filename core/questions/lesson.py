"""Whether a note that an agent wrote down becomes a lesson: find it, weigh it, ask, answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from operator import is_
from typing import TYPE_CHECKING, Final

from core.base.errors import RalphdeckError
from core.base.formatting import shorten_id
from core.base.text import plural, visible_line
from core.curation import commands
from core.questions.answer import Answer, no, reject_lesson, yes
from core.questions.impact import UNSEEN_USES
from core.questions.offer import chars_offered, offer_text
from core.records.decisions import REJECT, lesson_question_id
from core.records.lessons import LessonKind, LessonState
from core.records.loops import Outcome
from core.scanning.messages import describe_danger
from core.state import review_items as kinds

if TYPE_CHECKING:
    from core.config.settings import Settings
    from core.questions.priority import ImpactEstimator
    from core.records.extractions import Extraction
    from core.records.lessons import JoinedLesson
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

MOST_LESSONS: Final = 20  # Maximum number of lessons that are asked about at a time.
_MOST_TRIED: Final = 200  # Lessons from which patterns are drafted in one search.
_MOST_CITED: Final = 1000  # More citations of a lesson make no difference.


class LessonSearch:
    """Finds the lessons to ask about, each with its candidate pattern; not thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self.found: tuple[tuple[JoinedLesson, Extraction], ...] = ()
        self._settings = settings
        self._removed: dict[str, tuple[JoinedLesson, Extraction]] = {}
        self._searched: tuple[object, ...] = ()  # the records that the last search used
        self._searching: tuple[object, ...] = ()  # those of the search that has begun
        self._chosen: tuple[object, ...] = ()  # the evidence and the day by which lessons were chosen
        self._compared: Sequence[JoinedLesson] = ()  # the lessons to choose from
        self._pending: list[JoinedLesson] | None = None  # None while the lessons are compared and chosen
        self._next: list[tuple[JoinedLesson, Extraction]] = []

    def remove(self, lesson_id: str) -> None:
        """Remove a lesson that was accepted."""
        self._removed |= {one[0].id: one for one in self.found if one[0].id == lesson_id}
        self.found = tuple(one for one in self.found if one[0].id != lesson_id)

    def restore(self, lesson_id: str) -> None:
        """Ask again about what `remove` removed."""
        removed = self._removed.pop(lesson_id, None)
        if removed is not None and all(one[0].id != lesson_id for one in self.found):
            self.found = (removed, *self.found)

    def is_current(self, view: ProjectState) -> bool:
        """Return whether `found` is what a search in this state finds; evidence alone starts no search."""
        snapshot = view.snapshot
        records = (snapshot.lessons, snapshot.patterns, snapshot.curation)
        if not snapshot.lessons and not self.found:
            return True
        is_same = len(self._searched) == len(records) and all(map(is_, self._searched, records))
        return is_same and self._chosen == (view.board.evidence, view.now.date())

    def look(
        self,
        view: ProjectState,
        find: Callable[[], Sequence[JoinedLesson] | None],
        draft: Callable[[JoinedLesson], Extraction],
        is_ready: Callable[[], bool],
    ) -> bool | None:
        """Do one step; whether `found` changed, None if nothing is left to search.

        `find` returns the lessons, or None while it works on them; `is_ready` prepares what `draft` needs.
        """
        snapshot = view.snapshot
        records = (snapshot.lessons, snapshot.patterns, snapshot.curation)
        if self._compared:
            self._pending, self._compared = self._choose(self._compared, view), ()
            return False
        if self._pending is None:
            if len(self._searched) == len(records) and all(map(is_, self._searched, records)):
                return None
            if not snapshot.lessons and not self.found:
                self._searched = records
                return None
            self._searching = self._searching or records
            if (lessons := find()) is None:
                return False
            self._searched, self._searching, self._next = self._searching, (), []
            self._compared, self._pending = lessons, None if lessons else []
            return False
        if self._pending and len(self._next) < MOST_LESSONS:
            if is_ready():
                self._draft(self._pending.pop(0), draft)
            return False
        changed, self.found = tuple(self._next) != self.found, tuple(self._next)
        self._pending = None
        return changed

    def _choose(self, lessons: Sequence[JoinedLesson], view: ProjectState) -> list[JoinedLesson]:
        """Return the open lessons, most useful first, without those whose question is snoozed."""
        self._chosen = view.board.evidence, view.now.date()
        half_life, verdicts = view.settings.maturity.half_life_days, view.snapshot.curation.inversions
        chosen = []
        for one in lessons:
            if one.state is LessonState.OPEN and one.lesson.kind is not LessonKind.FACT:
                verdict = verdicts.get(lesson_question_id(one.lesson.text))
                if verdict is None or not verdict.is_snoozed(view.now, len(one.places)):
                    chosen.append(one)
        chosen.sort(key=lambda one: (not one.is_contradicted, -lesson_weight(one, view.now, half_life), one.id))
        return chosen[:_MOST_TRIED]

    def _draft(self, joined: JoinedLesson, draft: Callable[[JoinedLesson], Extraction]) -> None:
        try:
            offer = draft(joined)
        except RalphdeckError:
            return
        if offer.new:
            self._next.append((joined, offer))


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


def lessons(scales: ImpactEstimator, found: Sequence[tuple[JoinedLesson, Extraction]]) -> Iterator[ReviewItem]:
    """Ask about lessons that agents wrote down, of which a pattern can be made."""
    weights = [lesson_weight(one, scales.board.now, scales.settings.maturity.half_life_days) for one, _ in found]
    top = max(weights, default=0.0)
    for (joined, offer), weight in zip(found, weights, strict=True):
        lesson = joined.lesson
        does = describe_danger(lesson.text, scales.settings)
        parts = [f"written down by {visible_line(', '.join(joined.runners), 60)}", does and f"this text {does}"]
        if joined.contradicts:
            parts.append(f"contradicts {shorten_id(joined.contradicts[0])}")
        if joined.disagrees_with:
            parts.append(f"contradicts {plural(len(joined.disagrees_with), 'other lesson')}")
        cited = f", cited {plural(joined.uses, 'time')}" if joined.uses else ""
        loaded = ", loaded by the agent" if joined.is_loaded else ""
        yield scales.item(
            kinds.LESSON,
            joined.id,
            question="Make {} a lesson for all agents?",
            name=f"the note “{visible_line(lesson.text, 80)}”",
            this="this note of an agent",
            reason="; ".join(filter(None, parts)),
            place=f"in {plural(len(joined.places), 'place')}{loaded}{cited}",
            impact=scales.new(UNSEEN_USES * (weight + top * joined.is_contradicted)),
            chars=len(lesson.text) + len(lesson.why) + chars_offered(offer),
            offer=offer,
            lesson=joined,
            evidence=len(joined.places),
        )


def answers(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes, which makes a pattern of the note, and no, which rejects it."""
    assert item.offer is not None and item.lesson is not None
    yield yes("create", f"adds {offer_text(item.offer)}", commands.Extract(item.subject, expected=item.offer))
    yield no(REJECT.word, "nothing is added", reject_lesson(item.lesson), matters=False)
