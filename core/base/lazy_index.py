"""Indexes built on first use and updated incrementally."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Protocol, Self, TypeVar

from core.base.steps import Steps, Work

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
        self._work: tuple[Work[Index], Mapping[str, Record]] | None = None  # what builds a base, of which records
        self._lock = threading.Lock()

    def get(self) -> Index:
        """Return the index; build it on the first call."""
        with self._lock:
            if self._index is None:
                if self._base is not None:
                    self._index = self._base.updated(self._records, self._changed)
                    self._base = None
                else:
                    work, records = self._begin()
                    index = work.finish()
                    self._index = index if records is self._records else index.updated(self._records, self._changed)
                self._work = None
            return self._index

    def prepare(self, seconds: float) -> bool:
        """Build the index for some time; return whether `get` needs no long time any more."""
        with self._lock:
            if self._index is None and self._base is None:
                work, records = self._begin()
                if (made := work.run_for(seconds)) is not None:
                    self._work = None
                    if records is self._records:
                        self._index = made
                    else:
                        self._base = made
            return self._index is not None or self._base is not None

    def updated(self, records: Mapping[str, Record], changed_ids: frozenset[str]) -> Self:
        """Return a lazy index of newer records; only `changed_ids` differ."""
        with self._lock:
            if self._index is not None:
                return type(self)(records, self._index, changed_ids)
            later = type(self)(records, self._base, self._changed | changed_ids)
            later._work = self._work
            return later

    def _begin(self) -> tuple[Work[Index], Mapping[str, Record]]:
        if self._work is None:
            self._work, self._changed = (Work(self._build_in_steps()), self._records), frozenset()
        return self._work

    def _build_in_steps(self) -> Steps[Index]:
        """Build an index of the records; subclasses may work in steps."""
        yield
        return self.kind.build(self._records)
