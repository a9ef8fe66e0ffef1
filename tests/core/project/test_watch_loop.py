from __future__ import annotations

import pytest

from core.project.watch_loop import BATCH_BURST, BATCHES_PER_SECOND, BatchPacer


def test_a_burst_is_applied_at_once_and_a_steady_stream_at_a_steady_rate() -> None:
    now = 0.0
    pacer = BatchPacer(clock=lambda: now)
    for _ in range(BATCH_BURST):
        assert pacer.delay() == 0
        pacer.count()
    assert pacer.delay() == pytest.approx(1 / BATCHES_PER_SECOND)
    applied = 0
    for _tick in range(200):  # ten seconds in which something changes twenty times a second
        now += 0.05
        if pacer.delay() == 0:
            pacer.count()
            applied += 1
    assert applied == 10 * BATCHES_PER_SECOND
    now += 3600
    assert pacer.delay() == 0, "after a quiet time nothing waits"
