"""Which patterns are held out by chance: the coin of the experiment, and what it never holds out.

The coin is a keyed hash of the task and the pattern, so each process that has the secret sees the same side
(docs/experiments.md).
"""

from __future__ import annotations

import hmac
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.records.patterns import DECOMPOSITION_TAG, PatternType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from core.learning.assessment import Assessment
    from core.records.events import Event
    from core.records.patterns import Pattern

ALWAYS_TAG: Final = "always"
"""Tag of patterns that are never held out."""
SAME_TASK: Final = timedelta(days=1)  # in which the same text is the same task, from its first assignment
_SAFETY_WORDS: Final = frozenset({"safety", "security", "secrets", "privacy", "data-loss"})  # categories and tags
_KEY_CHARS: Final = 16
_SCALE: Final = 2.0**64


class Experiment(Struct, frozen=True):
    """The experiment of a user in one project: the share that is held out, 0..1, and the secret of the coin.

    `open_tasks` are the keys of the tasks at work, for calls that do not say which task they belong to.
    """

    share: float
    secret: bytes
    open_tasks: tuple[str, ...] = ()

    def key_of_text(self, text: str) -> str:
        """Return a key that is the same for texts with the same words, and that does not reveal them."""
        return self._digest("text", " ".join(text.casefold().split()))[:_KEY_CHARS]

    def key_of_task(self, text: str, now: datetime, earlier: Iterable[Event] = ()) -> str:
        """Return the key of the task that has a text `now`.

        `earlier` are the events of the experiment about this text, oldest first: what was first assigned within a day
        is the same task.
        """
        begun: dict[str, datetime] = {}
        for event in earlier:
            if event.trial is not None:
                begun.setdefault(event.trial.task, event.at)
        for task, at in reversed(begun.items()):
            if timedelta() <= now - at < SAME_TASK:
                return task
        return f"{self.key_of_text(text)}@{now:%Y-%m-%d}"

    def holds_out(self, task: str, pattern_id: str) -> bool:
        """Return whether the coin holds a pattern out of a task, by its key."""
        return int(self._digest("coin", task, pattern_id)[:_KEY_CHARS], 16) / _SCALE < self.share

    def _digest(self, *parts: str) -> str:
        # A NUL is in no part, so that no two lists of parts have the same message.
        message = "\0".join(part.replace("\0", " ") for part in parts).encode(errors="surrogateescape")
        return hmac.digest(self.secret, message, "sha256").hex()


def text_key(task: str) -> str:
    """Return the key of the text of a task, from the key of the task."""
    return task.partition("@")[0]


def secret_of_project(secret: bytes, name: str) -> bytes:
    """Return the secret of one project: that of the user with the name of the project's folder."""
    return hmac.digest(secret, f"project\0{name}".encode(errors="surrogateescape"), "sha256")


def why_always_given(pattern: Pattern, assessment: Assessment) -> str:
    """Return why a pattern is never held out, or "" if it may be."""
    if assessment.pin is not None:
        return "a person decided on it"
    if ALWAYS_TAG in pattern.tags:
        return f"it has the tag {ALWAYS_TAG}"
    if not _SAFETY_WORDS.isdisjoint({pattern.category.casefold(), *(tag.casefold() for tag in pattern.tags)}):
        return "it is about safety"
    if DECOMPOSITION_TAG in pattern.tags and pattern.type in (PatternType.SUCCESS, PatternType.ANTI):
        return "it is a decomposition strategy"
    return ""


class Assignment(Struct, frozen=True):
    """A pattern that a task would get, and whether it is held out with the probability `share`, 0..1."""

    pattern_id: str
    is_held_out: bool
    share: float


class Coin(Struct, frozen=True):
    """The coin for the patterns of one task, whose key is `task`.

    If it is not known which of several tasks it is, `others` are the other ones: what one of them must not get is held
    out, and the assignment is not recorded.
    """

    experiment: Experiment
    task: str
    others: tuple[str, ...] = ()

    @property
    def logged_task(self) -> str:
        """Key under which assignments are recorded; "" if they are not, because the task is uncertain."""
        return "" if self.others else self.task

    def assign_all(self, patterns: Iterable[tuple[Pattern, Assessment]]) -> tuple[Assignment, ...]:
        """Decide about patterns that the task would get; those that are always given are left out."""
        return tuple(
            Assignment(pattern.id, self.holds_out(pattern, assessment), self.experiment.share)
            for pattern, assessment in patterns
            if not why_always_given(pattern, assessment)
        )

    def holds_out(self, pattern: Pattern, assessment: Assessment) -> bool:
        """Return whether the task does not get a pattern."""
        if why_always_given(pattern, assessment):
            return False
        return any(self.experiment.holds_out(task, pattern.id) for task in (self.task, *self.others))
