"""Folders of a user who is not the one who runs the tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the folders of the user to a new one."""
    folder = tmp_path / "user"
    for variable in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(folder / variable.lower()))
    return folder
