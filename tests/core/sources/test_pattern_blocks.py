"""Changes of a large pattern file are read without decoding the rest, with the same result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.sources import pattern_blocks
from core.sources.patterns import EarlierPatterns, PatternFile, read_patterns

FILE = ".aiwg/ralph/shared/patterns/error-patterns.json"
COUNT = 50
IN_BLOCK = 8


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of few records, so that a small file has many."""
    with patch.object(pattern_blocks, "_RECORDS_IN_BLOCK", IN_BLOCK):
        yield


def record(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "pattern_id": f"pat-error-case-{number:03}",
        "error_signature": {"error_type": "TypeError", "error_pattern": f"Cannot read {number}"},
        "fix_approach": {"description": f"Check the value ü {number}"},
        **fields,
    }


def encode(records: list[Any], indent: int | None = None) -> bytes:
    document = {"version": "1.0.0", "pattern_registry": {"error_patterns": records}}
    return json.dumps(document, indent=indent, ensure_ascii=False).encode()


def read(data: bytes, known: EarlierPatterns | None = None) -> PatternFile:
    return read_patterns(FILE, data, known=known, with_schema=True)


def read_twice(records: list[Any]) -> EarlierPatterns:
    """A file that was read again, so that its blocks are known."""
    known = EarlierPatterns()
    for _ in range(2):
        read(encode(records), known)
    assert known.blocks is not None
    return known


@pytest.fixture
def records() -> list[Any]:
    return [record(number) for number in range(COUNT)]


def digests(known: EarlierPatterns, data: bytes) -> int:
    """Number of records that are looked at when the file is read again."""
    with patch("core.sources.patterns.blake2b", wraps=blake2b) as digest:
        assert read(data, known) == read(data)
    return digest.call_count - COUNT  # of the read from nothing


@pytest.mark.parametrize("place", [0, 1, COUNT // 2, COUNT - 1])
def test_only_records_near_the_changed_one_are_looked_at(records: list[Any], place: int) -> None:
    known = read_twice(records)
    for change in range(3):
        records[place] = record(place, usage_count=change + 1, tags=["x" * change])
        assert digests(known, encode(records)) <= 2 * IN_BLOCK


def test_unchanged_records_are_the_same_objects(records: list[Any]) -> None:
    known = read_twice(records)
    before = known.patterns
    records[7] = record(7, usage_count=3)
    after = read(encode(records), known).patterns
    assert [one.id for one, other in zip(before, after, strict=True) if one is not other] == ["pat-error-case-007"]


def test_an_appended_record_is_read_without_the_others(records: list[Any]) -> None:
    known = read_twice(records)
    assert digests(known, encode([*records, record(999)])) <= 2 * IN_BLOCK + 1


_EDITS = st.one_of(
    st.tuples(st.just("change"), st.integers(0, COUNT), st.integers(0, 30)),
    st.tuples(st.just("remove"), st.integers(0, COUNT), st.integers(1, 9)),
    st.tuples(st.just("insert"), st.integers(0, COUNT), st.integers(1, 9)),
    st.tuples(st.just("damage"), st.integers(0, COUNT), st.integers(0, 5)),
    st.tuples(st.just("cut"), st.integers(1, 120), st.integers(0, 5)),
    st.tuples(st.just("indent"), st.integers(0, COUNT), st.integers(0, 3)),
    st.tuples(st.just("bytes"), st.integers(0, 12_000), st.integers(0, 8)),
)
_DAMAGE: list[Any] = [{}, None, 7, {"tags": "x"}, record(1), {"pattern_id": "pat-error-odd-1", "usage_count": -1}]
_BYTES = [b",", b"]", b"}", b'"', b"\\", b"\xff", b" ", b"[", b"{"]


@settings(max_examples=20)
@given(st.lists(_EDITS, min_size=1, max_size=5))
def test_any_series_of_changes_is_read_as_from_nothing(edits: list[tuple[str, int, int]]) -> None:
    records: list[Any] = [record(number) for number in range(COUNT)]
    known, indent = read_twice(records), None
    for number, (kind, place, amount) in enumerate(edits):
        place = min(place, len(records))
        data = encode(records, indent)
        match kind:
            case "change":
                records[place : place + 1] = [record(place, usage_count=amount, tags=["t"] * (number + 1))]
            case "remove":
                del records[place : place + amount]
            case "insert":
                records[place:place] = [record(1000 * (number + 1) + one) for one in range(amount)]
            case "damage":
                records[place : place + 1] = [_DAMAGE[amount]]
            case "indent":
                indent = amount or None
            case "cut":
                data = data[: -place * amount]
                assert read(data, known) == read(data)
            case "bytes":
                at = place % len(data)
                data = data[:at] + _BYTES[amount] + data[at + number % 2 :]
                assert read(data, known) == read(data)
        data = encode(records, indent)
        assert read(data, known) == read(data)
