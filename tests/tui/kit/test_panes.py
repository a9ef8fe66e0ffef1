from __future__ import annotations

from tui.screens.base_screen import resized


def test_a_pane_takes_its_step_from_the_others() -> None:
    assert resized([24, 16], 0, "vertical", grow=True) == [26, 14]
    assert resized([24, 16], 1, "vertical", grow=True) == [22, 18]
    assert resized([24, 16], 0, "vertical", grow=False) == [22, 18]
    assert resized([40, 40, 40], 1, "horizontal", grow=True) == [37, 46, 37]


def test_no_pane_gets_too_small() -> None:
    assert resized([20, 5], 0, "vertical", grow=True) == [21, 4]
    assert resized([21, 4], 0, "vertical", grow=True) == [21, 4]
    assert resized([21, 60], 0, "horizontal", grow=False) == [21, 60]


def test_the_sum_stays_the_same() -> None:
    for first in range(4, 60):
        assert sum(resized([first, 17, 23], 2, "vertical", grow=True)) == first + 40
