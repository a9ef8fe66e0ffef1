from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.cli.conftest import Call, call_process


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell(shell: str, call: Call) -> None:
    result = call("--completion", shell)
    assert result.code == 0
    assert f"_RALPHDECK_COMPLETE={shell}_complete" in result.out


def completed(words: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What bash would offer for the last word."""
    monkeypatch.setenv("_RALPHDECK_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"ralphdeck {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - (not words.endswith(" ")) + 1))
    result = call_process([])
    assert (result.code, result.err) == (0, "")
    return [line.partition(",")[2] for line in result.out.splitlines() if line.partition(",")[2]]


@pytest.mark.slow
def test_commands_words_and_ids_complete(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("re", monkeypatch) == ["review"]
    assert completed("loop list --status paused,f", monkeypatch) == ["paused,failed"]
    ids = completed(f"--project {examples} pattern promote pat-error-null", monkeypatch)
    assert sorted(ids) == ["pat-error-null-check-001", "pat-error-null-check-015"]
    monkeypatch.setenv("RALPHDECK_PROJECT", str(examples))
    assert completed("loop inject ralph-fix-a", monkeypatch) == ["ralph-fix-api-d4e5f6a7"]
    assert completed("loop record ralph-fix-a", monkeypatch) == ["ralph-fix-api-d4e5f6a7"]
    assert completed("task show task-", monkeypatch) == ["task-001", "task-002"]
    assert completed("loop record ralph-fix-api-d4e5f6a7 pat-error-null-check-015 --cr", monkeypatch) == ["--criterion"]
    assert completed("changes anti_pattern.f", monkeypatch) == ["anti_pattern.failure_ratio_threshold="]


def test_attempts_complete(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_PROJECT", str(sample))
    assert completed("loop score task-001", monkeypatch) == ["task-001.1", "task-001.2", "task-001.3"]


def test_an_id_that_a_shell_would_obey_is_not_offered(examples: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (examples / ".aiwg/ralph/loops/$(touch pwned)").mkdir()
    monkeypatch.setenv("RALPHDECK_PROJECT", str(examples))
    assert not [word for word in completed("loop inject ", monkeypatch) if "$" in word]


def test_nothing_is_completed_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPHDECK_PROJECT", str(tmp_path / "gone"))
    assert completed("pattern promote pat", monkeypatch) == []
