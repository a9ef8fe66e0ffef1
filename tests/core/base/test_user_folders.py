"""Folders of the user."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import platformdirs
import pytest

from core.base.errors import BadInput
from core.base.user_folders import cache_folder, config_folder, state_folder


def _check_same_as_platformdirs() -> None:
    assert config_folder() == platformdirs.user_config_path("ralphdeck")
    assert state_folder() == platformdirs.user_state_path("ralphdeck")
    assert cache_folder() == platformdirs.user_cache_path("ralphdeck")


def test_folders_are_those_of_platformdirs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind))
    _check_same_as_platformdirs()


def test_folders_without_variables_are_below_the_home_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    assert tmp_path in cache_folder().parents
    _check_same_as_platformdirs()


def test_a_relative_folder_is_ignored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert tmp_path in cache_folder().parents


@pytest.mark.parametrize("folder", [config_folder, state_folder, cache_folder])
def test_an_unknown_home_folder_is_refused_and_not_in_the_project(
    monkeypatch: pytest.MonkeyPatch, folder: Callable[[], Path]
) -> None:
    monkeypatch.setenv("HOME", "here")
    for kind in ("CONFIG", "STATE", "CACHE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)
    with pytest.raises(BadInput, match="HOME"):
        folder()
