"""Files in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.storage import user_files
from core.storage.user_files import code_digest


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package."""
    package = tmp_path / "sources"
    (package / "tables").mkdir(parents=True)
    monkeypatch.setattr(user_files, "_CORE", tmp_path)
    return package


@pytest.mark.parametrize("name", ["module.py", "words.toml", "kinds.yaml", "vocabulary.txt", "tables/rules.yaml"])
def test_a_change_of_any_installed_file_changes_the_digest(package: Path, name: str) -> None:
    before = code_digest(["sources"])
    (package / name).write_text("one")
    created = code_digest(["sources"])
    (package / name).write_text("other")
    assert len({before, created, code_digest(["sources"])}) == 3


def test_compiled_modules_and_other_packages_do_not_change_the_digest(package: Path) -> None:
    before = code_digest(["sources"])
    for folder in (package / "__pycache__", package.parent / "search"):
        folder.mkdir()
        (folder / "module.cpython-311.pyc").write_bytes(b"compiled")
    assert code_digest(["sources"]) == before
