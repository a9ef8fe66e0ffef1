"""What is made of all patterns when it is first asked for, and brought up to date from what was made before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Generic, Protocol, Self, TypeVar

from core.records.patterns import Pattern


class Updatable(Protocol):
    """Something made of patterns; never changed, only replaced."""

    @classmethod
    def build(cls, patterns: Mapping[str, Pattern]) -> Self:
        """Of all of them."""

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: Iterable[str]) -> Self:
        """For newer patterns, of which only those in `changed_ids` were added, changed or removed."""


Made = TypeVar("Made", bound=Updatable)


class Lazy(Generic[Made]):
    """Made when it is first asked for; from any thread. A subclass says what of."""

    kind: type[Made]

    def __init__(
        self, patterns: Mapping[str, Pattern], base: Made | None = None, changed: frozenset[str] = frozenset()
    ) -> None:
        self._patterns = patterns
        self._base = base
        self._changed = changed
        self._made: Made | None = None
        self._lock = threading.Lock()

    def get(self) -> Made:
        """What is made of the patterns."""
        with self._lock:
            if self._made is None:
                if self._base is None:
                    self._made = self.kind.build(self._patterns)
                else:
                    self._made = self._base.updated(self._patterns, self._changed)
                    self._base = None
            return self._made

    def updated(self, patterns: Mapping[str, Pattern], changed_ids: frozenset[str]) -> Self:
        """For newer patterns, of which only those in `changed_ids` were added, changed or removed."""
        with self._lock:
            if self._made is not None:
                return type(self)(patterns, self._made, changed_ids)
            return type(self)(patterns, self._base, self._changed | changed_ids)
