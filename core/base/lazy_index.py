"""What is made of all records of a kind when first asked for, and brought up to date from what was made before."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

Record = TypeVar("Record")
Taken = TypeVar("Taken", contravariant=True)


class IncrementalIndex(Protocol[Taken]):
    """Something made of records; never changed, only replaced."""

    @classmethod
    def build(cls, records: Mapping[str, Taken], /) -> Self:
        """Of all of them."""

    def updated(self, records: Mapping[str, Taken], changed_ids: Iterable[str], /) -> Self:
        """For newer records, of which only those in `changed_ids` were added, changed or removed."""


Made = TypeVar("Made", bound=IncrementalIndex[Any])


class LazyIndex(Generic[Record, Made]):
    """Made when it is first asked for; from any thread. A subclass says what of."""

    kind: type[Made]

    def __init__(
        self, records: Mapping[str, Record], base: Made | None = None, changed: frozenset[str] = frozenset()
    ) -> None:
        self._records = records
        self._base = base
        self._changed = changed
        self._made: Made | None = None
        self._lock = threading.Lock()

    def get(self) -> Made:
        """What is made of the records."""
        with self._lock:
            if self._made is None:
                if self._base is None:
                    self._made = self.kind.build(self._records)
                else:
                    self._made = self._base.updated(self._records, self._changed)
                    self._base = None
            return self._made

    def updated(self, records: Mapping[str, Record], changed_ids: frozenset[str]) -> Self:
        """For newer records, of which only those in `changed_ids` were added, changed or removed."""
        with self._lock:
            if self._made is not None:
                return type(self)(records, self._made, changed_ids)
            return type(self)(records, self._base, self._changed | changed_ids)
