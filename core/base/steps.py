"""Long computations in small steps that let other work go on; value grouping."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable
from heapq import merge
from itertools import islice
from operator import itemgetter
from time import perf_counter
from typing import Any, Final, Generic, TypeAlias, TypeVar

_SORTED_AT_ONCE: Final = 500
_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
Steps: TypeAlias = Generator[None, None, _Result]
"""Generator that works in steps of about 100 us and returns the result, so that callers can pause it."""


def run_all(steps: Steps[_Result]) -> _Result:
    """Return the result of all steps."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            result: _Result = done.value
            return result


class Work(Generic[_Result]):
    """A computation that several threads may continue, one at a time."""

    def __init__(self, steps: Steps[_Result]) -> None:
        self._steps = steps
        self._results: list[_Result] = []
        self._lock = threading.Lock()

    def run_for(self, seconds: float) -> _Result | None:
        """Work for some time; return the result, or None if it is not finished."""
        end = perf_counter() + seconds
        with self._lock:
            try:
                while not self._results:
                    next(self._steps)
                    if perf_counter() >= end:
                        return None
            except StopIteration as done:
                self._results.append(done.value)
            return self._results[0]

    def finish(self) -> _Result:
        """Do all remaining steps and return the result."""
        with self._lock:
            if not self._results:
                self._results.append(run_all(self._steps))
            return self._results[0]


def sort_in_steps(items: Iterable[_Item], key: Callable[[_Item], Any]) -> Steps[list[_Item]]:
    """Do `sorted` step by step."""
    left = iter(items)
    parts: list[list[tuple[Any, _Item]]] = []
    while part := [(key(item), item) for item in islice(left, _SORTED_AT_ONCE)]:
        parts.append(sorted(part, key=itemgetter(0)))
        yield
    found = []
    for _, item in merge(*parts, key=itemgetter(0)):
        found.append(item)
        yield
    return found


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


def group_pairs(pairs: Iterable[tuple[_Key, _Value]]) -> dict[_Key, list[_Value]]:
    """Group the second items of pairs by the first, in order of first occurrence."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def group_in_steps(pairs: Iterable[tuple[_Key, _Value]]) -> Steps[dict[_Key, list[_Value]]]:
    """Do `group_pairs` step by step."""
    found: dict[_Key, list[_Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
        yield
    return found
