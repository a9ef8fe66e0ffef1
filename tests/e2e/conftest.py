from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.cli.demo.sample import copy_sample


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home folder of a new user."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The sample project as of now."""
    project = tmp_path / "acme-api"
    copy_sample(project, datetime.now(UTC))
    return project
