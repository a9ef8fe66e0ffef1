"""`ralphdeck review --conflicts` and `fine`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.core.cli.conftest import Call

TABS, SPACES = "Use tabs for indentation.", "Indent with 4 spaces."


@pytest.fixture
def shop(sample: Path) -> Path:
    (sample / "CLAUDE.md").write_text(f"- {TABS}\n- Never push to main.\n")
    (sample / "AGENTS.md").write_text(f"# Rules\n- {SPACES}\n- Never push to main.\n")
    return sample


def listed(call: Call, shop: Path, *args: str, code: int = 1) -> list[Any]:
    """The contradictions."""
    result = call("review", "--conflicts", "--json", "--project", shop, *args)
    assert result.code == code
    return [one for one in result.document["pairs"] if one["relation"] == "contradicts"]


def test_a_pair_is_listed_until_it_is_marked_as_fine_and_again_after_undo(shop: Path, call: Call) -> None:
    (pair,) = listed(call, shop)
    assert {one["place"] for one in pair["instructions"]} == {"CLAUDE.md:1", "AGENTS.md:2"}
    call("review", pair["id"][:6], "--fine", "--project", shop)
    assert listed(call, shop, code=0) == []
    (again,) = listed(call, shop, "--all", code=0)
    assert again["fine"]
    call("undo", "--project", shop)
    assert len(listed(call, shop)) == 1


def test_a_changed_text_is_listed_again(shop: Path, call: Call) -> None:
    call("review", listed(call, shop)[0]["id"], "--fine", "--project", shop)
    (shop / "AGENTS.md").write_text("- Indent with 2 spaces.\n")
    assert len(listed(call, shop)) == 1


def test_one_pair_is_shown_with_diffs_and_no_file_is_written(shop: Path, call: Call) -> None:
    before = [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")]
    id = listed(call, shop)[0]["id"]
    shown = call("review", id, "--conflicts", "--project", shop).out
    assert f"-- {TABS}" in shown
    assert f"-- {SPACES}" in shown
    assert [(shop / name).read_bytes() for name in ("CLAUDE.md", "AGENTS.md")] == before


def test_vectors_of_instructions_are_computed(shop: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    made = call("doctor", "--embed", "--json", "--project", shop).document
    assert made["instructions_made"] == made["instructions"] > 3
    assert len(listed(call, shop)) == 1


def test_what_was_not_compared_in_a_large_set_is_reported(shop: Path, call: Call) -> None:
    for name, word in (("CLAUDE.md", "Always"), ("AGENTS.md", "Never")):
        (shop / name).write_text("".join(f"- {word} run npm test {n} before commit.\n" for n in range(160)))
    shown = call("review", "--conflicts", "--project", shop)
    assert shown.code == 1
    assert "most similar ones only" in shown.err
    assert "too-many" in [
        one["code"] for one in call("review", "--conflicts", "--json", "--project", shop).document["findings"]
    ]


def test_review_lists_conflicts_of_a_repository_without_a_project(tmp_path: Path, call: Call, monkeypatch: Any) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CLAUDE.md").write_text(f"- {TABS}\n")
    (tmp_path / "AGENTS.md").write_text(f"- {SPACES}\n")
    monkeypatch.chdir(tmp_path)
    (question,) = call("review", "--json").document["questions"]
    assert question["kind"] == "conflict"
