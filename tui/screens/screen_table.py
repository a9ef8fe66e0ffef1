"""The texts and list columns of all screens, loaded from `screens.toml`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec
from msgspec.structs import replace

from core.show import comparison, contexts, decisions, patterns, what_if
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
    lesson_columns: tuple[Column, ...] = ()
    lesson_hint: str = ""


@cache
def load_tables() -> dict[str, ScreenTable]:
    """Load `screens.toml` as tables by screen ID, with the columns of lists that other programs draw too."""
    tables = msgspec.toml.decode(Path(__file__).with_name("screens.toml").read_bytes(), type=dict[str, ScreenTable])
    tables["patterns"] = replace(tables["patterns"], columns=patterns.COLUMNS, sorts=patterns.SORTS)
    tables["what_if"] = replace(tables["what_if"], columns=what_if.COLUMNS)
    tables["past"] = replace(tables["past"], columns=comparison.COLUMNS)
    tables["log"] = replace(tables["log"], columns=decisions.COLUMNS)
    tables["context"] = replace(tables["context"], columns=contexts.COLUMNS)
    return tables
