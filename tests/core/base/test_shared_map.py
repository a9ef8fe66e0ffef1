"""Mappings that share what did not change."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from core.base import shared_map
from core.base.shared_map import with_changes

_CHANGES = st.dictionaries(st.integers(0, 9), st.integers(0, 99), max_size=4)


@given(_CHANGES, st.lists(_CHANGES, max_size=8))
def test_a_changed_mapping_equals_an_updated_dict(first: dict[int, int], changes: list[dict[int, int]]) -> None:
    versions: list[tuple[Mapping[int, int], dict[int, int]]] = []
    shared: Mapping[int, int] = first
    model = dict(first)
    for change in changes:
        versions.append((shared, model))
        shared, model = with_changes(shared, change), model | change
    versions.append((shared, model))
    for one, other in versions:  # also the earlier ones, which must not change
        assert one == other
        assert list(one) == list(other)
        assert len(one) == len(other)
        assert [one.get(key) for key in range(10)] == [other.get(key) for key in range(10)]
        assert [key in one for key in range(10)] == [key in other for key in range(10)]


def test_many_changes_are_merged_into_a_new_dict() -> None:
    before: Mapping[int, int] = {}
    for number in range(shared_map._FEW + 1):
        before = with_changes(before, {number: number})
    assert isinstance(before, dict)
    assert list(before) == list(range(shared_map._FEW + 1))
