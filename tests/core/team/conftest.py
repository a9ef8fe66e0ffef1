"""Folders of a user who is not the one who runs the tests, and the mark of tests that need a server."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def user_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Point the folders of the user to a new one."""
    folder = tmp_path / "user"
    for variable in ("CONFIG", "STATE", "CACHE", "DATA"):
        monkeypatch.setenv(f"XDG_{variable}_HOME", str(folder / variable.lower()))
    return folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests that need a server as slow."""
    for item in items:
        if item.path.is_relative_to(HERE) and {"team", "cluster"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.slow)
