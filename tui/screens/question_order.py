"""The questions of a review session in order, the current one, and answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from core.base.text import plural

if TYPE_CHECKING:
    from core.index.review_items import ReviewItem

Key = tuple[str, str]  # identity of a question: its kind and its `question_key`


def key_of(item: ReviewItem) -> Key:
    """Return the identity of a question, the same for both directions of a duplicate."""
    return item.kind, item.question_key


def same_question(one: ReviewItem, other: ReviewItem) -> bool:
    return key_of(one) == key_of(other) and one.subject == other.subject


class Skipped(NamedTuple):
    """Number of questions that a step skipped, resolved elsewhere or taken."""

    resolved: int = 0
    taken: int = 0  # open at other members of the team


class QuestionOrder:
    """The questions of a review session in a fixed order, which has an end.

    They are those that are worth reading, until `read_on` adds the others and those that were put off. New questions
    are appended, and closed questions keep their place. Until `fix` is called, the order of the queue applies to all
    questions after the current one. Questions for which `is_taken` is true (another member has them open) come next
    only if there is no other one.
    """

    def __init__(self, is_taken: Callable[[ReviewItem], bool] = lambda item: False) -> None:
        self._is_taken = is_taken
        self._slots: list[Key] = []  # every question of the session, open or closed
        self._open: dict[Key, ReviewItem] = {}  # the questions of the newest queue
        self._is_fixed = False
        self._reads_all = False  # whether also questions are asked that are not worth reading
        self._current: Key | None = None
        self._at = 0  # index of the current question in `_slots`
        self._later: set[Key] = set()  # questions that the user put off
        self._being_answered: list[Key | None] = []
        """Questions whose answers are being written, oldest first; None for a decision without a question."""
        self._just_answered: set[Key] = set()  # questions whose answers are written, but are still in the queue
        self._swapped: set[Key] = set()  # duplicates for which the user swapped the pattern to keep
        self._fresh: set[Key] = set()  # questions that were appended and not shown yet
        self._resolved: set[Key] = set()  # questions resolved elsewhere that the user has not skipped yet
        self.returning = ""  # key of the question to go to as soon as it is open again

    def _is_open(self, key: Key) -> bool:
        return key in self._open and key not in self._being_answered and key not in self._just_answered

    def _shown(self, key: Key) -> ReviewItem:
        item = self._open[key]
        return replace(item, subject=item.other, other=item.subject) if key in self._swapped else item

    def _following(self, start: int, by: int = 1, *, skips_taken: bool = True, skips_later: bool = True) -> int | None:
        """Return the first open slot from `start`, in steps of `by`, wrapping around."""
        count = len(self._slots)
        slots = ((start + by * step) % count for step in range(count))
        taken: int | None = None
        for slot in slots:
            key = self._slots[slot]
            if self._is_open(key) and not (skips_later and key in self._later):
                if not (skips_taken and self._is_taken(self._open[key])):
                    return slot
                taken = slot if taken is None else taken
        return taken

    @property
    def items(self) -> list[ReviewItem]:
        """The open questions of the session, with those that were put off."""
        return [self._shown(key) for key in self._slots if self._is_open(key)]

    @property
    def pending(self) -> list[ReviewItem]:
        """The questions that are still asked before the end."""
        return [self._shown(key) for key in self._slots if self._is_open(key) and key not in self._later]

    @property
    def others(self) -> list[ReviewItem]:
        """The open questions that are not part of the session."""
        known = set(self._slots)
        return [self._shown(key) for key in self._open if key not in known and self._is_open(key)]

    @property
    def later(self) -> int:
        """The number of open questions that were put off."""
        return sum(map(self._is_open, self._later))

    @property
    def rest(self) -> str:
        """What `n` continues with at the end: `2 questions left, 1 put off`, or ""."""
        left, others = len(self.pending), len(self.others)
        parts = [f"{plural(left, 'question')} left"] * bool(left) + [f"{self.later:,} put off"] * bool(self.later)
        return ", ".join(parts + [f"{plural(others, 'question')} hardly worth the time"] * bool(others))

    @property
    def item(self) -> ReviewItem | None:
        if self._current is not None and self._is_open(self._current):
            return self._shown(self._current)
        slot = self._following(self._at)
        return self._shown(self._slots[slot]) if slot is not None else None

    @property
    def next(self) -> ReviewItem | None:
        slot = self._following(self._at + 1)
        return self._shown(self._slots[slot]) if slot is not None and slot != self._at else None

    @property
    def place(self) -> int:
        return self._at + 1

    @property
    def total(self) -> int:
        """Number of questions of the session, without new ones until one is reached."""
        return len(self._slots) - self.fresh

    @property
    def asked(self) -> Set[Key]:
        """The questions that stay in the session: all of a fixed order, else the current."""
        if self._is_fixed:
            return set(self._slots)
        return {self._current} if self._current is not None else set()

    @property
    def fresh(self) -> int:
        """The number of new questions, until one of them is shown."""
        return sum(self._is_open(key) for key in self._fresh)

    def fix(self) -> None:
        """Keep the current order: from now on new questions are appended."""
        self._is_fixed = True

    def follow(self, queue: Sequence[ReviewItem]) -> ReviewItem | None:
        """Update from a newer queue; return the current question if resolved elsewhere."""
        before = self.item if self._current is not None else None
        answered = {*self._being_answered, *self._just_answered}
        closed = self._open.keys() - {key_of(item) for item in queue}
        self._just_answered.clear()
        self._open = {key_of(item): item for item in queue}
        worth = [key for key, item in self._open.items() if self._reads_all or item.is_worth_reading]
        if self._is_fixed and any(key in self._open for key in self._slots):
            known = set(self._slots)
            new = [key for key in worth if key not in known]
            self._slots += new
            self._fresh |= set(new)
            self._resolved = (self._resolved | (closed - answered)) - self._open.keys()
        else:
            front = [key for key in [self._current] if key in self._open]
            self._slots = list(dict.fromkeys([*front, *worth]))
            self._fresh.clear()
            self._resolved.clear()
            self._at = 0
        if self.returning and self.go_to_question(self.returning):
            self.returning = ""
        elif before is not None and key_of(before) not in self._open:
            self._current = None
            self._resolved.discard(key_of(before))
            return before if key_of(before) in closed - answered else None
        return None

    def plan(self, items: Sequence[ReviewItem]) -> None:
        """Start a new order with these questions first."""
        first = [key_of(item) for item in items]
        self._slots = list(dict.fromkeys([*first, *(key_of(item) for item in self.items)]))
        self._fresh.clear()
        self._resolved.clear()
        self._later.clear()
        self._current, self._at = None, 0
        self.fix()

    def ask_next(self, items: Sequence[ReviewItem]) -> None:
        """Ask these questions at once, in this order, and the current one after them."""
        self.fix()
        keys = [key_of(item) for item in items]
        before = [key for key in self._slots[: self._at] if key not in keys]
        after = [key for key in self._slots[self._at :] if key not in keys]
        self._slots = [*before, *keys, *after]
        self._open |= {key_of(item): item for item in items}
        self._fresh -= set(keys)
        self._later -= set(keys)
        if self._current is not None:  # a row, which may have no more questions
            self._just_answered.add(self._current)
        self._at = len(before)
        self._current = keys[0] if keys else self._current

    def read_on(self) -> None:
        """Ask the questions that were put off, and those that are not worth reading."""
        self.fix()
        self._reads_all = True
        later = [key for key in self._slots if key in self._later]
        others = [key_of(item) for item in self.others]
        before = [key for key in self._slots if key not in self._later]
        if self.item is None:
            self._at = min(len(before), max(len(before) + len(later) + len(others) - 1, 0))
            self._current = None
        self._slots = [*before, *later, *others]
        self._later.clear()
        self._fresh.clear()

    def settle(self) -> ReviewItem | None:
        """Keep the current question until it is answered or resolved, and return it."""
        item = self.item
        if item is not None:
            self._current = key_of(item)
            self._at = self._slots.index(self._current)
            if self._current in self._fresh:
                self._fresh.clear()
        return item

    def give(self) -> None:
        """Mark the current question as being answered, and go to the next one."""
        self.fix()
        if item := self.item:
            self._being_answered.append(key_of(item))
        self._current, self.returning = None, ""

    def wait(self) -> None:
        """Record that a decision that answers no question is being written."""
        self._being_answered.append(None)

    def land(self, *, decided: bool) -> Key | None:
        """Record the result of the oldest pending decision; return its question, if any."""
        key = self._being_answered.pop(0) if self._being_answered else None
        if key is not None and decided:
            self._just_answered.add(key)
        return key

    def step(self, by: int) -> Skipped:
        """Put the question off and go to the next one, or back to the previous open one.

        Returns how many were skipped. Only a step forwards skips questions that are taken.
        """
        self.fix()
        self.returning = ""
        if by > 0 and self._current is not None and self._is_open(self._current):
            self._later.add(self._current)
        start = self._at + by if by > 0 or self.item is not None else self._at  # back from the end
        slot = self._following(start, by, skips_taken=by > 0, skips_later=by > 0)
        if slot is None:
            self._current = None
            return Skipped()
        passed = set(self._slots[self._at : slot] if by > 0 else self._slots[slot : self._at]) & self._resolved
        self._resolved -= passed
        between = self._slots[self._at + 1 : slot] if by > 0 else []
        self._at = slot
        self._current = self._slots[slot]
        self._later.discard(self._current)
        return Skipped(len(passed), sum(self._is_open(key) and key not in self._later for key in between))

    def go_to_question(self, key: str) -> bool:
        """Go to the question with this key, or the first about this pattern or loop ID."""
        candidates = [*self.items, *self.others]
        found = [item for item in candidates if item.question_key == key]
        found += [item for item in candidates if key in (item.subject, item.other)]
        if not found:
            return False
        self._current = key_of(found[0])
        self._later.discard(self._current)
        if self._current not in self._slots:
            self._slots.insert(self._at, self._current)
        return True

    def return_to(self, key: str) -> None:
        """Go to the question with this key as soon as it is open again."""
        self.returning = key

    def swap(self) -> None:
        """Swap which pattern of a duplicate is kept."""
        if item := self.item:
            self._swapped ^= {key_of(item)}


OUTCOMES: Final = ("kept", "new", "merged", "removed")
"""Results of answers that the summary of a session counts, by lesson."""
PUT_OFF: Final = "put off"  # result of a snooze


class GivenAnswer(NamedTuple):
    """An answer of a session, and its effect on a number of `lessons`."""

    result: str
    changed: frozenset[str]  # IDs of what gets another prompt
    lessons: int = 1


@dataclass
class ReviewSession:
    """Answers since the dashboard was opened, by question key, and the time left.

    `ends` is the end of the time budget, None without one.
    """

    answers: dict[str, GivenAnswer] = field(default_factory=dict)
    ends: datetime | None = None

    def is_over(self, now: datetime) -> bool:
        return self.ends is not None and now >= self.ends

    @property
    def summary(self) -> str:
        """Sentence on what was done: `You answered 3 questions: 2 lessons kept, 1 new.`"""
        counts = Counter[str]()
        for answer in self.answers.values():
            counts[answer.result] += answer.lessons
        parts = [(counts[result], result) for result in OUTCOMES if counts[result]]
        texts = [f"{plural(count, 'lesson')} {result}" for count, result in parts[:1]]
        texts += [f"{count:,} {result}" for count, result in parts[1:]]
        late = sum(answer.result == PUT_OFF for answer in self.answers.values())
        done = [f"answered {plural(len(self.answers) - late, 'question')}"] if late < len(self.answers) else []
        done += [f"put off {late:,}" if done else f"put off {plural(late, 'question')}"] if late else []
        if not done:
            return ""
        lessons = f": {', '.join(texts)}" if texts else ""
        changed = frozenset[str]().union(*(answer.changed for answer in self.answers.values()))
        prompts = f" The next prompts of {plural(len(changed), 'session')} change." if changed else ""
        return f"You {' and '.join(done)}{lessons}.{prompts}"
