"""`ralphdeck --readonly`: whatever is called, not a byte of the project changes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.files.file_access import release
from tests.core.cli.conftest import Call

PATTERN = "pat-error-null-check-015"
OTHER = "pat-success-types-first-006"
DUE = "pat-success-split-by-type-002"
LOOP = "ralph-add-rate-limiting-to-the-login-d97b384a"
TASK = "task-001"
REFUSED = [
    ["pattern", "promote", PATTERN, OTHER],
    ["pattern", "deprecate", PATTERN, "--reason", "x"],
    ["pattern", "reset", PATTERN],
    ["pattern", "note", PATTERN, "x"],
    ["pattern", "quarantine", PATTERN, "--reason", "x"],
    ["undo"],
    ["undo", "--redo"],
    ["pattern", "invert", DUE, "--accept"],
    ["pattern", "invert", "--auto"],
    ["pattern", "prune", PATTERN, "--reason", "x"],
    ["pattern", "prune", "--max-age-days", "0"],
    ["pattern", "merge", PATTERN, "pat-error-type-mismatch-003"],
    ["loop", "record", "bd-1", PATTERN],
    ["loop", "record", "bd-1", "--outcome", "--failure"],
    ["loop", "record", "bd-1", "--error", "x"],
    ["task", "init", "x"],
    ["debug", "record", "ef884591", "--escalate"],
    ["loop", "extract", "current-loop"],
]
READING = [
    ["loop", "list"],
    ["pattern", "list"],
    ["lesson", "--recurring"],
    ["pattern", "show", PATTERN, "--why"],
    ["log"],
    ["log", "--verify"],
    ["metrics"],
    ["doctor"],
    ["loop", "inject", "--task", "Fix TypeScript type errors"],
    ["loop", "inject", LOOP],  # warns that it is not recorded
    ["pattern", "prune", "--dry-run"],
]


@pytest.fixture
def project(sample: Path) -> Iterator[Path]:
    yield sample
    release(sample / ".aiwg")


def tree(project: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder, with its time and its content."""
    return {
        path.relative_to(project).as_posix(): (path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in project.rglob("*")
    }


@pytest.mark.slow
def test_writing_commands_are_refused_and_others_work(project: Path, call: Call) -> None:
    before = tree(project)
    for words in REFUSED:
        result = call("--readonly", *words)
        assert (result.code, result.out) == (1, ""), words
        assert f"Error: read-only: nothing is written in {project / '.aiwg'};" in result.err, words
    for words in READING:
        assert call("--readonly", *words).code in (0, 3), words
    assert tree(project) == before


def test_the_environment_or_an_option_at_the_end_asks_for_it_as_well(
    project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "read-only" in call("pattern", "promote", PATTERN, "--project", project, "--readonly").err
    release(project / ".aiwg")
    monkeypatch.setenv("RALPHDECK_READONLY", "1")
    assert "read-only" in call("pattern", "promote", PATTERN).err
    monkeypatch.setenv("RALPHDECK_READONLY", "0")
    release(project / ".aiwg")
    assert call("pattern", "promote", PATTERN).code == 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", [(), ("--readonly",)])
def test_no_export_is_written_into_aiwg(project: Path, call: Call, mode: tuple[str, ...]) -> None:
    (project / "way-in").symlink_to(project / ".aiwg")
    call("pattern", "export")  # which makes the id of the project
    before = tree(project)
    for words in (
        ["loop", "inject", LOOP, "--output"],
        ["task", "show", TASK, "--export"],
        ["metrics", "--export"],
        ["pattern", "export", "--output"],
    ):
        for folder in (".aiwg", "way-in/ralph"):
            result = call(*mode, *words, project / folder / "x.md")
            assert (result.code, result.out) == (1, ""), words
            assert "is inside .aiwg, which belongs to the loops; choose another folder" in result.err, words
    assert tree(project) == before
