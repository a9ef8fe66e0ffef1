"""The list of lessons that agents and runners wrote down, as one of the lists of Reflections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.queries.record_filters import select_lessons
from core.records.lessons import JoinedLesson, LessonKind, LessonState

if TYPE_CHECKING:
    from core.queries.filter_parser import Query
    from core.records.snapshot import Delta, Snapshot


class LessonList:
    """The joined lessons of a project; `joined` is None until they are compared."""

    def __init__(self) -> None:
        self.joined: dict[str, JoinedLesson] | None = None
        self.wanted = ""  # the lesson to go to when the lessons are compared

    def show(self, found: Sequence[JoinedLesson]) -> str:
        """Replace the lessons; return the row to go to, if one is wanted."""
        self.joined = {one.id: one for one in found}
        wanted, self.wanted = self.wanted, ""
        return self.row_of(wanted)

    def is_affected_by(self, delta: Delta) -> bool:
        return bool(delta.lessons or delta.patterns or delta.decisions)

    def row_of(self, lesson_id: str) -> str:
        """Return the row that contains a lesson; "" if none does."""
        if lesson_id in (self.joined or {}):
            return lesson_id
        found = (one.id for one in (self.joined or {}).values() if any(place.id == lesson_id for place in one.places))
        return next(found, "")

    def get(self, key: str | None) -> JoinedLesson | None:
        return (self.joined or {}).get(key or "")

    def select(self, query: Query) -> list[str]:
        return select_lessons((self.joined or {}).values(), query)

    def session(self, key: str | None, snapshot: Snapshot) -> str:
        """Return the ID of the first known session in which a lesson was learned, or ""."""
        joined = self.get(key)
        places = joined.places if joined is not None else ()
        return next((place.loop_id for place in places if place.loop_id in snapshot.loops), "")

    def why_no_draft(self, key: str | None) -> str | None:
        """Return why no pattern can be drafted from a lesson, None if one can."""
        joined = self.get(key)
        if joined is None:
            return "The list is empty"
        if joined.state is LessonState.ACCEPTED:
            return f"Already accepted as {', '.join(joined.patterns)}"
        if joined.lesson.kind is LessonKind.FACT:
            return "A fact becomes a pattern only with a type: ralphdeck lesson accept ID --type TYPE"
        return None

    def why_no_reject(self, key: str | None) -> str | None:
        """Return why a lesson cannot be rejected, None if it can."""
        joined = self.get(key)
        if joined is None:
            return "The list is empty"
        if joined.state is LessonState.ACCEPTED:
            return f"Already accepted as {', '.join(joined.patterns)}"
        return "Already rejected" if joined.state is LessonState.REJECTED else None
