"""Fast search for values assigned to names of secrets."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.base.secret_names import find_assigned
from core.base.value_shapes import REGEX

PARTS = ("private_key", "PassWord", "db-pass", "X_PASS", "to\u212aen", "\u017fecret", "_authToken", "pwd", "key", "İ")
BETWEEN = (" = ", ": ", "=", "=> ", '": "', "\n", " ", "abc123DEF456xyz", '"q w"', "a")


@given(st.lists(st.sampled_from(PARTS + BETWEEN), max_size=12).map("".join))
def test_find_assigned_finds_what_finditer_finds(text: str) -> None:
    expected = [found.span() for found in REGEX["assigned"].finditer(text)]
    assert [found.span() for found in find_assigned(REGEX["assigned"], text)] == expected
