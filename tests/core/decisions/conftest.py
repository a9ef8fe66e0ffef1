from __future__ import annotations

import pytest

from core.base.paths import ProjectPaths
from core.decisions.curator import Curator
from tests.factories import make_curator


@pytest.fixture
def curator(paths: ProjectPaths) -> Curator:
    """Curator of the project that the `paths` of a test module make."""
    return make_curator(paths)
