"""Grouping of values by a key."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from core.base.steps import Steps

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
