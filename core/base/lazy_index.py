"""Indexes built on first use and updated incrementally."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

Record = TypeVar("Record")
RecordIn = TypeVar("RecordIn", contravariant=True)


class IncrementalIndex(Protocol[RecordIn]):
    """Immutable index of records, from which an index of newer records can be made."""

    @classmethod
    def build(cls, records: Mapping[str, RecordIn], /) -> Self:
        """Index all records."""

    def updated(self, records: Mapping[str, RecordIn], changed_ids: Iterable[str], /) -> Self:
        """Return an index of newer records; only `changed_ids` differ from the old ones."""


Index = TypeVar("Index", bound=IncrementalIndex[Any])


class LazyIndex(Generic[Record, Index]):
    """Index built on first use, from any thread; subclasses set the class as `kind`."""

    kind: type[Index]

    def __init__(
        self, records: Mapping[str, Record], base: Index | None = None, changed: frozenset[str] = frozenset()
    ) -> None:
        self._records = records
        self._base = base
        self._changed = changed
        self._index: Index | None = None
        self._lock = threading.Lock()

    def get(self) -> Index:
        """Return the index; build it on the first call."""
        with self._lock:
            if self._index is None:
                if self._base is None:
                    self._index = self.kind.build(self._records)
                else:
                    self._index = self._base.updated(self._records, self._changed)
                    self._base = None
            return self._index

    def updated(self, records: Mapping[str, Record], changed_ids: frozenset[str]) -> Self:
        """Return a lazy index of newer records; only `changed_ids` differ."""
        with self._lock:
            if self._index is not None:
                return type(self)(records, self._index, changed_ids)
            return type(self)(records, self._base, self._changed | changed_ids)
