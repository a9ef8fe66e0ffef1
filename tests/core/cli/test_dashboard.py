"""What the command line hands over to the screen; the screen itself is replaced."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from core.deck import Deck
from tests.core.cli.conftest import Call

Opened = list[tuple[Path, Path, Path]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Iterator[Opened]:
    """The projects that a dashboard was opened on."""
    calls: Opened = []

    def run(deck: Deck, *, state_file: Path, keymap_file: Path, remembered_as: str, is_fresh: bool) -> int:
        assert is_fresh is (remembered_as == "demo")
        calls.append((deck.project.project, state_file, keymap_file))
        return 143

    screen: Any = ModuleType("tui.app")
    screen.run = run
    monkeypatch.setitem(sys.modules, "tui.app", screen)
    monkeypatch.setattr("core.cli.dashboard.need_terminal", lambda: None)
    monkeypatch.setattr("core.cli.demo.need_terminal", lambda: None)
    monkeypatch.setattr("core.cli.dashboard.start_logging", lambda: True)
    yield calls


def test_it_opens_on_the_nearest_project_at_or_above_and_gives_its_exit_code(
    examples: Path, home: Path, call: Call, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = examples / ".aiwg" / "ralph" / "loops"
    assert call(inside).code == 143
    monkeypatch.chdir(inside)
    assert call().code == 143
    assert call("--project", examples).code == 143
    files = (home / "state/ralphdeck/dashboard.json", home / "config/ralphdeck/keymap.toml")
    assert opened == [(examples, *files)] * 3


def test_a_folder_without_aiwg_is_waited_for(
    tmp_path: Path, call: Call, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call()
    call(tmp_path)
    call("--project", tmp_path)
    assert [project for project, *_ in opened] == [tmp_path] * 3


def test_the_demo_opens_on_a_scratch_copy_that_is_removed(call: Call, opened: Opened) -> None:
    assert call("demo").code == 143
    ((project, *_),) = opened
    assert project.name == "acme-api" and not project.exists()
