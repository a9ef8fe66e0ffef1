"""The sample project is what its script makes, and never goes stale."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.sample import SAMPLE, copy_sample, sample_anchor
from tests.sample import write_sample


def _contents(root: Path) -> dict[str, str]:
    folder = root / ".aiwg"
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_committed_sample_is_what_the_script_makes(tmp_path: Path) -> None:
    write_sample(tmp_path, sample_anchor())
    assert _contents(SAMPLE) == _contents(tmp_path), "make it again with: python -m tests.sample"


@pytest.mark.parametrize(
    "now",
    [
        datetime(2026, 11, 21, 12, 0, 0, 999_000, tzinfo=UTC),
        datetime(2028, 2, 29, 23, 59, 59, tzinfo=UTC),
        datetime(2031, 1, 1, 0, 0, 1, tzinfo=UTC),
    ],
)
def test_a_copy_is_the_sample_as_made_for_that_day(tmp_path: Path, now: datetime) -> None:
    copy_sample(tmp_path / "copied", now)
    write_sample(tmp_path / "written", now)
    assert _contents(tmp_path / "copied") == _contents(tmp_path / "written")
