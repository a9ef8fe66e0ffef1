"""The texts and list columns of all screens, loaded from `screens.toml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from core.show.table import Column


class ScreenTable(msgspec.Struct):
    """Texts and columns of one screen. The fields are explained at the top of `screens.toml`."""

    about: str
    hint: str = ""
    empty: str = ""
    files: tuple[str, ...] = ()
    sorts: tuple[tuple[str, bool], ...] = ()
    columns: tuple[Column, ...] = ()
    other_columns: tuple[Column, ...] = ()


@cache
def load_tables() -> dict[str, ScreenTable]:
    """Load `screens.toml` as tables by screen ID."""
    return msgspec.toml.decode(Path(__file__).with_name("screens.toml").read_bytes(), type=dict[str, ScreenTable])
