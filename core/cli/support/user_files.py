"""Files of ralphdeck outside of projects: state, keymap, restore points of agents' files, and the path of the log."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Final

import platformdirs

from core.base.errors import Unwritable
from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.records.times import parse_time
from core.storage.user_tables import VISITS, read_tables, state_file

APP: Final = "ralphdeck"


def current_state_file() -> Path:
    """Return the file of the user's own state, after moving what earlier versions kept elsewhere into it.

    In a folder that cannot be written, the old file stays as it is.
    """
    old = platformdirs.user_state_path(APP) / "dashboard.json"
    if old.exists():
        from core.storage.dashboard_migration import migrate_dashboard
        from core.storage.user_store import UserStore

        with suppress(Unwritable):
            migrate_dashboard(old, UserStore(state_file()))
    return state_file()


def last_visit(project: Path) -> datetime | None:
    """Return when the dashboard was last closed or open on a project, or None."""
    try:
        rows = read_tables(current_state_file()).rows(VISITS)
    except Unwritable:
        return None
    visit = next((row for row in rows if row.get("project") == str(project)), {})
    return parse_time(visit.get(LAST_VISIT, visit.get(LAST_SEEN)))


def keymap_file() -> Path:
    return platformdirs.user_config_path(APP) / "keymap.toml"


def restore_points_file() -> Path:
    return platformdirs.user_state_path(APP) / "connections.json"


def log_file() -> Path:
    return platformdirs.user_state_path(APP) / "ralphdeck.log"
