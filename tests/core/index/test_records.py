"""Values of a table by key, looked up one by one or all at once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from core.index.records import LookUp, Reader

FEW, MANY = 3, 300
"""Numbers of keys: the first are looked up one by one, the others at once."""


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as made:
        made.execute("CREATE TABLE pair (kind INTEGER, name TEXT, value INTEGER)")
        made.executemany("INSERT INTO pair VALUES (1, ?, ?)", ((f"n{number}", number) for number in range(2 * MANY)))
        made.execute("INSERT INTO pair VALUES (2, 'other', 7)")
        yield made


def look_up(connection: sqlite3.Connection, order: str = "") -> LookUp:
    return LookUp(Reader(connection, {}), "SELECT name, value FROM pair WHERE kind = ?", "name", 1, order=order)


@pytest.mark.parametrize("count", [FEW, MANY])
def test_a_value_is_found_by_its_key_however_many_are_asked_for(connection: sqlite3.Connection, count: int) -> None:
    values = look_up(connection)
    assert [values.get(f"n{number}") for number in range(count)] == [*range(count)]
    assert values.get("nothing") is None and values.get("other") is None, "of another kind"


@pytest.mark.parametrize("count", [FEW, MANY])
def test_what_was_added_or_removed_counts_before_and_after_all_is_read(
    connection: sqlite3.Connection, count: int
) -> None:
    values = look_up(connection)
    values.add("n1", None)
    values.add("n2", -2)
    values.add("new", 5)
    for number in range(count):
        values.get(f"n{number}")
    assert [values.get(name) for name in ("n0", "n1", "n2", "new")] == [0, None, -2, 5]
    assert {"n0", "n599", "new"} <= {*values} and "other" not in {*values}
    values.forget()
    assert [values.get(name) for name in ("n1", "n2", "new")] == [1, 2, None]


@pytest.mark.parametrize("count", [FEW, MANY])
@pytest.mark.parametrize(("order", "first"), [("value", 0), ("value DESC", 99)])
def test_of_several_values_of_a_key_the_first_in_the_order_counts(
    connection: sqlite3.Connection, order: str, first: int, count: int
) -> None:
    connection.executemany("INSERT INTO pair VALUES (1, 'twice', ?)", ((99,), (0,), (50,)))
    values = look_up(connection, f" ORDER BY {order}")
    for number in range(count):
        values.get(f"n{number}")
    assert values.get("twice") == first
