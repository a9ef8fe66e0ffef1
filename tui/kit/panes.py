"""Sizes of the panes of a screen, which lie beside or above one another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from textual.containers import Container
    from textual.widget import Widget

STEPS: Final = 20  # presses of a key that a pane would need to fill the screen
FEWEST_CELLS: Final = {"vertical": 4, "horizontal": 20}  # lines or columns of the smallest pane, by layout


def layout_of(container: Container) -> str:
    """Return "horizontal" if the panes are side by side, otherwise "vertical"."""
    layout = container.styles.layout
    return layout.name if layout is not None and layout.name in FEWEST_CELLS else "vertical"


def resized(sizes: Sequence[int], number: int, layout: str, *, grow: bool) -> list[int]:
    """Return the sizes in cells after one step of pane `number`; the others share what it gives or takes.

    The sizes stay as they are where a pane would get too small.
    """
    step = max(sum(sizes) // STEPS, 1) * (1 if grow else -1)
    others = sum(sizes) - sizes[number]
    new = [size - round(step * size / others) for size in sizes]
    new[number] = sum(sizes) - sum(size for n, size in enumerate(new) if n != number)
    return new if min(new) >= FEWEST_CELLS[layout] else list(sizes)


def cells_of(panes: Sequence[Widget], layout: str) -> list[int]:
    """Return the height or width of each pane in cells, with its border."""
    return [pane.outer_size.height if layout == "vertical" else pane.outer_size.width for pane in panes]


def set_sizes(panes: Sequence[Widget], sizes: Sequence[int] | None, layout: str) -> None:
    """Give the panes shares of the room in the ratio of `sizes`; None restores those of the style sheets."""
    for number, pane in enumerate(panes):
        share = f"{sizes[number]}fr" if sizes is not None else None
        pane.styles.height, pane.styles.width = (share, None) if layout == "vertical" else (None, share)
