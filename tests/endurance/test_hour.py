"""The dashboard for an hour at twenty file changes a second: its memory hardly grows."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from core.cli.demo.sample import copy_sample
from tests.bench.changing import changing
from tests.bench.screen import Screen

MINUTES = 60
CHANGES_PER_SECOND = 20
MOST_GROWTH = 0.5
"""MB per minute; docs/reliability.md has the measured value."""
pytestmark = [pytest.mark.endurance, pytest.mark.slow, pytest.mark.timeout(0)]


def test_an_hour_of_changes_hardly_grows_the_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("CACHE", "CONFIG", "STATE", "DATA"):
        monkeypatch.setenv(f"XDG_{kind}_HOME", str(tmp_path / kind.lower()))
    project = tmp_path / "project"
    copy_sample(project, datetime.now(UTC))
    sizes: list[float] = []
    with Screen(project) as screen:
        screen.wait_for("Loops")
        screen.calm()
        with changing(project, CHANGES_PER_SECOND):
            for _ in range(MINUTES):
                share = screen.processor_share(60)
                sizes.append(screen.resident_mb())
                print(f"{len(sizes)} min: {share:.1%} of a core, {sizes[-1]:.1f} MB", flush=True)
    second_half = sizes[MINUTES // 2 :]
    slope = float(np.polyfit(range(len(second_half)), second_half, 1)[0])
    print(f"memory slope in the second half: {slope:+.3f} MB a minute")
    assert slope < MOST_GROWTH
