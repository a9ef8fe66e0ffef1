"""Which question is in front while others come, go and are answered elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from core.review.items import ReviewItem
from core.review.queue import keep_order

Key = tuple[str, str]
"""What tells one question from all others: its kind and its `question_key`."""


def key_of(item: ReviewItem) -> Key:
    """Which question this is; of two patterns that resemble each other, whichever is kept."""
    return item.kind, item.question_key


def same_question(one: ReviewItem, other: ReviewItem) -> bool:
    """Whether both ask the same, and of two patterns about the same one."""
    return key_of(one) == key_of(other) and one.subject == other.subject


class Walk:
    """A way through the queue: the question in front moves on by an answer or a key, and by nothing else."""

    def __init__(self) -> None:
        self.gone: ReviewItem | None = None
        """The question in front, where it went without an answer of this desk."""
        self._order: tuple[ReviewItem, ...] = ()
        self._current: Key | None = None
        self._given: list[Key | None] = []
        """Questions whose answers are on their way to the disk, in that order; None for another decision."""
        self._turned: set[Key] = set()
        """Pairs of patterns of which the other one is to be kept."""
        self._landed: set[Key] = set()
        """Questions whose answers are on disk, as the next queue will show."""
        self._at = 0
        self._returning = ""

    @property
    def items(self) -> list[ReviewItem]:
        """The questions that are not answered, in the order in which they come."""
        turned, answered = self._turned, {*self._given, *self._landed}
        return [
            replace(item, subject=item.other, other=item.subject) if key_of(item) in turned else item
            for item in self._order
            if key_of(item) not in answered
        ]

    @property
    def item(self) -> ReviewItem | None:
        """The question in front; None where it is `gone`, or where nothing waits."""
        if self.gone is not None:
            return None
        waiting = self.items
        for item in waiting:
            if key_of(item) == self._current:
                return item
        return waiting[min(self._at, len(waiting) - 1)] if waiting else None

    @property
    def next(self) -> ReviewItem | None:
        """The question that comes when the one in front is answered."""
        waiting = self.items
        return waiting[(self._at + 1) % len(waiting)] if len(waiting) > 1 else None

    @property
    def place(self) -> int:
        """The number of the question in front, from 1 on."""
        return self._at + 1

    def follow(self, queue: Sequence[ReviewItem], *, moves_on: Callable[[ReviewItem], bool]) -> None:
        """Take a newer queue: what is in front stays, what is new comes behind it.

        Args:
            queue: What waits by now.
            moves_on: Whether the question in front, if it has left the queue, makes way for the next one; else it
                is `gone`.
        """
        self._landed.clear()
        before = self.item if self._current is not None else None
        self._order = keep_order(self._order, queue, self._current[1] if self._current is not None else None)
        if self._returning and self.turn_to(self._returning):
            self._returning = ""
        elif before is not None and key_of(before) not in {key_of(item) for item in self.items}:
            self._current = None
            if not moves_on(before):
                self.gone = before

    def plan(self, items: Sequence[ReviewItem]) -> None:
        """These come first, in this order."""
        first = {key_of(item): item for item in items}
        others = {key_of(item): item for item in self._order}
        self._order = tuple((first | others).values())
        self._current, self._at, self.gone = None, 0, None

    def settle(self) -> ReviewItem | None:
        """Keep to the question in front from here on; returns it."""
        item = self.item
        if item is not None:
            self._current = key_of(item)
            self._at = [key_of(one) for one in self.items].index(self._current)
        return item

    def give(self) -> None:
        """Let go of the question in front: its answer is on the way, the next one is in front at once."""
        if item := self.item:
            self._given.append(key_of(item))
        self._current, self._returning = None, ""

    def wait(self) -> None:
        """A decision is on its way that answers no question."""
        self._given.append(None)

    def land(self, *, decided: bool) -> bool:
        """A decision is on disk, or was refused: then its question comes back.

        Returns:
            Whether it was the answer to a question.
        """
        key = self._given.pop(0) if self._given else None
        if key is not None and decided:
            self._landed.add(key)
        return key is not None

    def step(self, by: int) -> None:
        """To a question before or behind; from one that is gone to the one that took its place."""
        waiting = self.items
        self._returning = ""
        if self.gone is not None:
            self.gone, by = None, min(by, 0)
        if waiting:
            self._at = (self._at + by) % len(waiting)
            self._current = key_of(waiting[self._at])

    def turn_to(self, key: str) -> bool:
        """To the question that is filed under a key, else to one about this pattern or loop."""
        waiting = self.items
        found = [item for item in waiting if item.question_key == key]
        found += [item for item in waiting if key in (item.subject, item.other)]
        if found:
            self.gone, self._current = None, key_of(found[0])
        return bool(found)

    def come_back_to(self, key: str) -> None:
        """Turn to this question as soon as it waits again."""
        self._returning = key

    def swap(self) -> None:
        """Keep the other one of two patterns."""
        if item := self.item:
            self._turned ^= {key_of(item)}
