"""The table of the screens: their texts and the columns of their lists."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from tui.widgets.record_table import Column


class ScreenTable(msgspec.Struct):
    """Texts and columns of one screen; see the head of `screens.toml` for the fields."""

    about: str
    hint: str = ""
    empty: str = ""
    files: tuple[str, ...] = ()
    sorts: tuple[tuple[str, bool], ...] = ()
    columns: tuple[Column, ...] = ()
    other_columns: tuple[Column, ...] = ()


@cache
def load_tables() -> dict[str, ScreenTable]:
    """Load `screens.toml`: the table of each screen that has actions, by its ID."""
    return msgspec.toml.decode(Path(__file__).with_name("screens.toml").read_bytes(), type=dict[str, ScreenTable])
