from __future__ import annotations

from pathlib import Path

import pytest

from core.tasks.protocol import Episodes
from tests.copying import copy_folder
from tests.factories import make_episodes

EXAMPLES = Path(__file__).parents[2] / "trees/spec-examples"


@pytest.fixture
def memory(tmp_path: Path) -> Episodes:
    """The task memory of an empty project."""
    return make_episodes(tmp_path)


@pytest.fixture
def examples(tmp_path: Path) -> Path:
    """A copy of the example project."""
    return copy_folder(EXAMPLES, tmp_path / "examples")
