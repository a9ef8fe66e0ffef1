from __future__ import annotations

from tests.core.cli.conftest import Call


def test_check_plays_and_reports(call: Call) -> None:
    result = call("demo", "--check", "--seconds", "1", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.document["ok"] is True
    assert result.document["loops"] >= 12 and result.document["changed_loops"] > 0


def test_a_check_result_is_described_in_words(call: Call) -> None:
    result = call("demo", "--check", "--seconds", "1")
    assert result.code == 0
    assert result.out.startswith("ok: read ") and result.out.count("\n") == 1
