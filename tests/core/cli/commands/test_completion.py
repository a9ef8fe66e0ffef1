from __future__ import annotations

from pathlib import Path

import pytest

from core.cli.program import run
from tests.core.cli.conftest import Call


def test_each_shell_has_a_script(call: Call) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert f"_RALPHDECK_COMPLETE={shell}_complete" in call("--completion", shell).out


def completed(words: str, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> list[str]:
    """What bash would offer for the last word."""
    with monkeypatch.context() as patch:
        patch.setenv("_RALPHDECK_COMPLETE", "bash_complete")
        patch.setenv("COMP_WORDS", f"ralphdeck {words}")
        patch.setenv("COMP_CWORD", str(len(words.split()) - (not words.endswith(" ")) + 1))
        with pytest.raises(SystemExit) as ended:
            run([])
    out, err = capfdbinary.readouterr()
    assert (ended.value.code, err) == (0, b"")
    return [line.partition(",")[2] for line in out.decode().splitlines() if line.partition(",")[2]]


def test_commands_words_and_ids_complete(
    examples: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (examples / ".aiwg/ralph/loops/$(touch pwned)").mkdir()
    for words, offered in (
        ("re", ["review"]),
        ("loop list --status paused,f", ["paused,failed"]),
        ("pattern promote pat-error-null", ["pat-error-null-check-001", "pat-error-null-check-015"]),
        ("loop inject ralph-fix-a", ["ralph-fix-api-d4e5f6a7"]),
        ("loop record ralph-fix-a", ["ralph-fix-api-d4e5f6a7"]),
        ("task show task-", ["task-001", "task-002"]),
        ("loop score task-001", ["task-001.1", "task-001.2", "task-001.3"]),
        ("loop record ralph-fix-api-d4e5f6a7 pat-error-null-check-015 --cr", ["--criterion"]),
        ("changes anti_pattern.f", ["anti_pattern.failure_ratio_threshold="]),
    ):
        assert sorted(completed(words, monkeypatch, capfdbinary)) == offered
    assert not [word for word in completed("loop inject ", monkeypatch, capfdbinary) if "$" in word], (
        "a shell would obey it"
    )
    monkeypatch.setenv("RALPHDECK_PROJECT", str(examples / "gone"))
    assert completed("pattern promote pat", monkeypatch, capfdbinary) == []
