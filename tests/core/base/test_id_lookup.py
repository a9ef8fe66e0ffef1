from __future__ import annotations

import pytest

from core.base.errors import UnknownRecord
from core.base.id_lookup import find_matching_ids, require_one, suggest_id

KNOWN = {"debug-1", "debug-10", "debug-2"}


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("debug-1", ["debug-1"]),
        ("debug-10", ["debug-10"]),
        ("debug", ["debug-1", "debug-10", "debug-2"]),
        ("ebug", []),
        ("", []),
    ],
)
def test_a_name_matches_the_id_or_a_prefix(name: str, meant: list[str]) -> None:
    assert find_matching_ids(name, KNOWN) == meant


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("debug", "'debug' is ambiguous (debug-1, debug-10, debug-2); use a longer id"),
        ("x\x1b[31m", "no session 'x␛[31m'; see: ralphdeck debug list"),
    ],
)
def test_errors_for_no_or_several_matches_say_what_to_do(name: str, expected: str) -> None:
    with pytest.raises(UnknownRecord) as raised:
        require_one(find_matching_ids(name, KNOWN), name, what="session", command="debug list")
    assert str(raised.value) == expected


def test_a_part_of_an_id_is_enough_where_fragments_are_allowed() -> None:
    assert find_matching_ids("bug-2", KNOWN, fragments=True) == ["debug-2"]
    assert find_matching_ids("BUG-1", KNOWN, fragments=True) == ["debug-1", "debug-10"]
    assert find_matching_ids("-2", KNOWN, fragments=True) == [], "too short"


def test_an_unknown_id_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownRecord, match="did you mean debug-2"):
        require_one([], "debgu-2", what="session", command="debug list", known={"debug-2", "other"})


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("nul-chek", "; did you mean pat-error-null-check-015?"),
        ("PAT-ERROR-NULL-CHEK-015", "; did you mean pat-error-null-check-015?"),
        ("tsk-001", "; did you mean task-001?"),
        ("xyzzy", ""),
        ("", ""),
    ],
)
def test_a_mistyped_id_is_answered_with_the_nearest_one(name: str, suggested: str) -> None:
    assert suggest_id(name, ["pat-error-null-check-015", "pat-success-types-first-006", "task-001"]) == suggested
