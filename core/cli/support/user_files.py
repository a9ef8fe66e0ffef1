"""Files of ralphdeck outside of projects: state, keymap, restore points, log."""

from __future__ import annotations

import logging
import logging.handlers
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

from core.base.errors import Unwritable
from core.base.paths import config_folder, state_folder
from core.base.text import visible
from core.files.user_files import VISITS, find_last_visit, read_tables, state_file

APP: Final = "ralphdeck"


def last_visit(project: Path, now: datetime) -> datetime | None:
    """Return the end of the last dashboard visit before the present one, or None."""
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
    """Return the file with the originals of files that `ralphdeck compile` changed."""
    return state_folder() / "compiled.json"


def log_file() -> Path:
    return state_folder() / "ralphdeck.log"


MAX_LOG_BYTES: Final = 1_000_000  # Size at which the log file is rotated to `ralphdeck.log.1`.


class _VisibleFormatter(logging.Formatter):
    """Makes control characters visible, because log files are read on terminals."""

    def format(self, record: logging.LogRecord) -> str:
        return visible(super().format(record))


def start_logging() -> bool:
    """Send all logging to the log file; return False if it cannot be written."""
    root = logging.getLogger()
    file = log_file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handler: logging.Handler = logging.handlers.RotatingFileHandler(
            file, maxBytes=MAX_LOG_BYTES, backupCount=1, encoding="utf-8", errors="backslashreplace"
        )
    except OSError:
        handler = logging.NullHandler()
    handler.setFormatter(_VisibleFormatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    logging.raiseExceptions = False
    return not isinstance(handler, logging.NullHandler)


def log_traceback() -> Path | None:
    """Log the handled exception; return the file, or None if it cannot be written."""
    if not start_logging():
        return None
    logging.getLogger(APP).error("unexpected error in: %s", " ".join(sys.argv), exc_info=True)
    return log_file()
