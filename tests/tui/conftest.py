from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.sample import copy_sample
from tests.tui.story import NOW


@pytest.fixture(autouse=True)
def _same_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times are drawn in the machine's zone; here that is UTC. No colour setting leaks in."""
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.delenv("TMUX", raising=False)
    time.tzset()


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The sample project, as of `NOW`."""
    target = tmp_path / "acme-api"
    copy_sample(target, NOW)
    return target


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Where the dashboard keeps its own files."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder
