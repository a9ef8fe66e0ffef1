"""The order of the review questions in a sitting, and the question in front."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.state.review_items import ReviewItem

Key = tuple[str, str]
"""Identity of a question: its kind and its `question_key`."""


def key_of(item: ReviewItem) -> Key:
    """Identity of a question; of two patterns that resemble each other, whichever is kept."""
    return item.kind, item.question_key


def same_question(one: ReviewItem, other: ReviewItem) -> bool:
    """Whether both ask the same, and of two patterns about the same one."""
    return key_of(one) == key_of(other) and one.subject == other.subject


class Walk:
    """The questions of a sitting in an order that stays: new ones are appended, closed ones keep their number.

    Until `fix` is called the order follows the queue, behind the question in front.
    """

    def __init__(self) -> None:
        self._slots: list[Key] = []
        """Every question of the sitting, open or closed."""
        self._open: dict[Key, ReviewItem] = {}
        """The questions of the newest queue."""
        self._is_fixed = False
        self._current: Key | None = None
        self._at = 0
        """The slot of the question in front."""
        self._given: list[Key | None] = []
        """Questions whose answers are being written, oldest first; None for another decision."""
        self._landed: set[Key] = set()
        """Questions whose answers are on disk, as the next queue will show."""
        self._turned: set[Key] = set()
        """Pairs of patterns of which the other one is to be kept."""
        self._fresh: set[Key] = set()
        """Questions that were appended and have not been in front."""
        self._resolved: set[Key] = set()
        """Questions that were closed without an answer here, and not passed since."""
        self._returning = ""

    def _is_open(self, key: Key) -> bool:
        return key in self._open and key not in self._given and key not in self._landed

    def _shown(self, key: Key) -> ReviewItem:
        item = self._open[key]
        return replace(item, subject=item.other, other=item.subject) if key in self._turned else item

    def _following(self, start: int, by: int = 1) -> int | None:
        """The first slot from `start` on, forwards or backwards and around the ends, whose question is open."""
        count = len(self._slots)
        slots = ((start + by * step) % count for step in range(count))
        return next((slot for slot in slots if self._is_open(self._slots[slot])), None)

    @property
    def items(self) -> list[ReviewItem]:
        """The open questions, in order."""
        return [self._shown(key) for key in self._slots if self._is_open(key)]

    @property
    def item(self) -> ReviewItem | None:
        """The question in front; None without an open one."""
        if self._current is not None and self._is_open(self._current):
            return self._shown(self._current)
        slot = self._following(self._at)
        return self._shown(self._slots[slot]) if slot is not None else None

    @property
    def next(self) -> ReviewItem | None:
        """The question that comes when the one in front is answered."""
        slot = self._following(self._at + 1)
        return self._shown(self._slots[slot]) if slot is not None and slot != self._at else None

    @property
    def place(self) -> int:
        """The number of the question in front, from 1."""
        return self._at + 1

    @property
    def total(self) -> int:
        """How many questions the sitting has had so far."""
        return len(self._slots)

    @property
    def fresh(self) -> int:
        """How many questions were appended and have not been in front."""
        return sum(self._is_open(key) for key in self._fresh)

    def fix(self) -> None:
        """Keep the order from now on."""
        self._is_fixed = True

    def follow(self, queue: Sequence[ReviewItem]) -> ReviewItem | None:
        """Take a newer queue.

        Returns:
            The question in front if the queue no longer has it and no answer was given here; the next one is in front.
        """
        before = self.item if self._current is not None else None
        answered = {*self._given, *self._landed}
        closed = self._open.keys() - {key_of(item) for item in queue}
        self._landed.clear()
        self._open = {key_of(item): item for item in queue}
        if self._is_fixed and any(key in self._open for key in self._slots):
            known = set(self._slots)
            new = [key for key in self._open if key not in known]
            self._slots += new
            self._fresh |= set(new)
            self._resolved = (self._resolved | (closed - answered)) - self._open.keys()
        else:
            front = [key for key in [self._current] if key in self._open]
            self._slots = list(dict.fromkeys([*front, *self._open]))
            self._fresh.clear()
            self._resolved.clear()
            self._at = 0
        if self._returning and self.turn_to(self._returning):
            self._returning = ""
        elif before is not None and key_of(before) not in self._open:
            self._current = None
            self._resolved.discard(key_of(before))
            return before if key_of(before) in closed - answered else None
        return None

    def plan(self, items: Sequence[ReviewItem]) -> None:
        """Begin a new order: these questions first."""
        first = [key_of(item) for item in items]
        self._slots = list(dict.fromkeys([*first, *(key_of(item) for item in self.items)]))
        self._fresh.clear()
        self._resolved.clear()
        self._current, self._at = None, 0
        self.fix()

    def settle(self) -> ReviewItem | None:
        """Stay at the question in front from here on; returns it."""
        item = self.item
        if item is not None:
            self._current = key_of(item)
            self._at = self._slots.index(self._current)
            self._fresh.discard(self._current)
        return item

    def give(self) -> None:
        """The question in front is answered and the answer is being written: the next one is in front at once."""
        self.fix()
        if item := self.item:
            self._given.append(key_of(item))
        self._current, self._returning = None, ""

    def wait(self) -> None:
        """A decision that answers no question is being written."""
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

    def step(self, by: int) -> int:
        """Go to the next open question, or to the one before.

        Returns:
            How many questions were passed that had been resolved since.
        """
        self.fix()
        self._returning = ""
        slot = self._following(self._at + by, by)
        if slot is None:
            return 0
        passed = set(self._slots[self._at : slot] if by > 0 else self._slots[slot : self._at]) & self._resolved
        self._resolved -= passed
        self._at = slot
        self._current = self._slots[slot]
        return len(passed)

    def turn_to(self, key: str) -> bool:
        """Go to the question that is filed under a key, else to one about this pattern or loop."""
        found = [item for item in self.items if item.question_key == key]
        found += [item for item in self.items if key in (item.subject, item.other)]
        if found:
            self._current = key_of(found[0])
        return bool(found)

    def come_back_to(self, key: str) -> None:
        """Go to this question as soon as it is open again."""
        self._returning = key

    def swap(self) -> None:
        """Keep the other one of two patterns."""
        if item := self.item:
            self._turned ^= {key_of(item)}
