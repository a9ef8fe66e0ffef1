"""Sentences with the same words and different demands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.retrieval.contradiction import parse_demand, split_unspaced


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mock the gateway in tests", "Do not mock the gateway in tests"),
        ("Use global state", "Avoid global state"),
        ("The cache must be cleared", "The cache must NOT be cleared"),
        ("Types zuerst ändern", "Types nicht zuerst ändern"),
        ("先に型を更新する", "先に型を更新しない"),
        ("Set the timeout to 30 seconds", "Set the timeout to 300 seconds"),
        ("Increase the pool under load", "Decrease the pool under load"),
        ("Enabling strict mode helps", "Disabling strict mode helps"),
        ("Test with the network", "Test without the network"),
        ("Run the migrations before the tests", "Run the migrations after the tests"),
        ("Use callbacks instead of promises", "Use promises rather than callbacks"),
        ("Update the interface before the code", "Update the code before the interface"),
    ],
)
def test_different_demands_differ(one: str, other: str) -> None:
    assert parse_demand(one).differs(parse_demand(other)) and parse_demand(other).differs(parse_demand(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Never mock the gateway", "Don\u2019t mock the gateway"),
        ("Keep handlers free of state", "Avoid state in handlers"),
        ("Lock in order", "Lock in order, so that no worker does not wait"),
        ("Retry 3 times", "Retry with backoff"),
        ("In attempt 2 types came first: 3 type errors", "In attempt 4 types came first: 12 of 14 tests failed"),
        ("Fix src/a1.ts:12 at once", "Fix src/a1.ts:90 at once"),
        ("Run the migrations before the tests", "Run the tests after the migrations"),
        ("When adding properties, update the type before the code", "Update the type before the code for properties"),
        ("Add a lock and remove the retry", "Remove the retry"),
    ],
)
def test_compatible_demands_do_not_differ(one: str, other: str) -> None:
    assert not parse_demand(one).differs(parse_demand(other)) and not parse_demand(other).differs(parse_demand(one))


def test_text_without_spaces_is_split_into_pairs() -> None:
    assert split_unspaced("a 型定義 b") == "a  型定 定義  b"


@given(st.text(max_size=300), st.text(max_size=300))
def test_any_text_agrees_with_itself_and_differs_both_ways(one: str, other: str) -> None:
    assert not parse_demand(one).differs(parse_demand(one))
    assert parse_demand(one).differs(parse_demand(other)) == parse_demand(other).differs(parse_demand(one))
