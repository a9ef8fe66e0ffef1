from __future__ import annotations

import pytest

from core.base.errors import UnknownRecord
from core.base.id_lookup import find_matching_ids, require_one

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
    ("name", "told"),
    [
        ("debug", "'debug' begins 3 ids of sessions; give more of it"),
        ("x\x1b[31m", "no session 'x␛[31m'; see: ralphdeck debug sessions"),
    ],
)
def test_errors_for_no_or_several_matches_say_what_to_do(name: str, told: str) -> None:
    with pytest.raises(UnknownRecord) as raised:
        require_one(
            find_matching_ids(name, KNOWN), name, what="session", ids="ids of sessions", command="debug sessions"
        )
    assert str(raised.value) == told
