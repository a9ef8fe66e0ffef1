"""Files of ralphdeck outside of projects: state, keymap, restore points of agents' files, and the path of the log."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Final

from core.base.errors import Unwritable
from core.base.paths import config_folder, state_folder
from core.files.user_files import VISITS, find_last_visit, read_tables, state_file

APP: Final = "ralphdeck"


def last_visit(project: Path, now: datetime) -> datetime | None:
    """Return when the last visit of the dashboard to a project ended, before the one that goes on; None if never."""
    try:
        rows = read_tables(state_file()).rows(VISITS)
    except Unwritable:
        return None
    visit = next((row for row in rows if row.get("project") == str(project)), {})
    return find_last_visit(visit, now)


def keymap_file() -> Path:
    return config_folder() / "keymap.toml"


def restore_points_file() -> Path:
    return state_folder() / "connections.json"


def compiled_points_file() -> Path:
    """Return the file with what files with lessons were before `ralphdeck compile` changed them."""
    return state_folder() / "compiled.json"


def log_file() -> Path:
    return state_folder() / "ralphdeck.log"
