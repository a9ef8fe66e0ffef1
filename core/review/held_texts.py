"""Searches in steps for held reflections that loops and tasks would get."""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import is_
from typing import Final

from core.base.text import visible_line
from core.review.context_recipients import Recipient, list_recipients
from core.scanning.messages import find_withhold_reason
from core.state.contexts import held_reflections
from core.state.project_state import ProjectState
from core.state.review_items import HeldText

MAX_TEXTS: Final = 100
"""Held reflections that are asked about at a time."""

_PAUSE: Final = timedelta(minutes=1)


class HeldTexts:
    """Held reflections, those of the first readers first; one thread at a time."""

    def __init__(self) -> None:
        self.found: tuple[HeldText, ...] = ()
        self._known: tuple[object, ...] = ()
        self._begun: datetime | None = None
        self._waiting: list[Recipient] = []
        self._next: dict[str, HeldText] = {}

    def look(self, view: ProjectState) -> bool | None:
        """Search one more task; whether `found` changed, None if no task was left."""
        if not self._waiting:
            self._begin(view)
        if not self._waiting:
            return None
        reader, limit = self._waiting.pop(), view.settings.injection.max_field_chars

        def shown(text: str) -> str:
            return visible_line(text.strip(), limit)

        for one in held_reflections(view, reader.task):
            known_text = self._next.get(one.id)
            readers_of = (*known_text.readers, reader.id) if known_text is not None else (reader.id,)
            self._next[one.id] = HeldText(
                id=one.id,
                text=one.text,
                does=find_withhold_reason(one.text, shown),
                title=one.title,
                sources=one.sources,
                readers=readers_of,
            )
        if self._waiting:
            return False
        found = tuple(self._next.values())[:MAX_TEXTS]
        changed, self.found = found != self.found, found
        return changed

    def _begin(self, view: ProjectState) -> None:
        """Start over if the records changed; at most once in `_PAUSE`."""
        snapshot = view.snapshot
        known = (snapshot.reflections, snapshot.memory_tasks, snapshot.tasks, snapshot.loops)
        is_same = len(known) == len(self._known) and all(map(is_, known, self._known))
        if is_same or (self._begun is not None and view.now - self._begun < _PAUSE):
            return
        self._known, self._begun, self._next = known, view.now, {}
        readers = list_recipients(snapshot) if view.settings.scan.holds_other_texts else ()
        self._waiting = list({reader.task: reader for reader in reversed(readers)}.values())
