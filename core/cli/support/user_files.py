"""Files of ralphdeck outside of projects: state, keymap, restore points of agents' files, and the path of the log."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Final

import platformdirs

from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.records.times import parse_time

APP: Final = "ralphdeck"


def state_file() -> Path:
    return platformdirs.user_state_path(APP) / "dashboard.json"


def last_visit(project: Path) -> datetime | None:
    """Return when the dashboard was last closed or open on a project, or None."""
    try:
        found = json.loads(state_file().read_text(encoding="utf-8"))["projects"][str(project)]
        return parse_time(found[LAST_VISIT] if LAST_VISIT in found else found[LAST_SEEN])
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None


def keymap_file() -> Path:
    return platformdirs.user_config_path(APP) / "keymap.toml"


def restore_points_file() -> Path:
    return platformdirs.user_state_path(APP) / "connections.json"


def log_file() -> Path:
    return platformdirs.user_state_path(APP) / "ralphdeck.log"
