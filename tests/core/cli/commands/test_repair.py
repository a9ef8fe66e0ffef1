"""`ralphdeck doctor --repair` and what doctor reports about such patterns."""

from __future__ import annotations

from pathlib import Path

from tests.core.cli.conftest import Call
from tests.core.questions.extraction.test_extractor import FIXED, OLD, extracted, record_fix


def test_repairs_are_printed_then_applied_and_undone(tmp_path: Path, call: Call) -> None:
    record_fix(tmp_path)
    file = extracted(tmp_path, OLD).project.pattern_file("error")
    before = file.read_bytes()
    words = ("doctor", "--repair", "--project", tmp_path)
    checks = call("doctor", "--project", tmp_path).out
    assert "trigger: 1 lesson with an unspecific trigger (ralphdeck doctor --repair proposes" in checks
    assert f"text: Settle the error: Change cart.py → {FIXED}" in call(*words).out
    (repair,) = call(*words, "--json").document["repairs"]
    assert (repair["action"], repair["problems"]) == ("repair", ["trigger", "text"])
    assert file.read_bytes() == before, "only --apply writes"
    assert call(*words, "--apply", "--json").document["written"] is True
    assert call("doctor", "--json", "--project", tmp_path).document["old_rules"]["trigger"] == 0
    again = call(*words, "--apply", "--json").document
    assert (again["decision"], again["written"]) == (None, False)
    assert call("undo", "--project", tmp_path).code == 0
    assert file.read_bytes() == before
