"""Files of ralphdeck outside of projects: state, keymap, log."""

from __future__ import annotations

import json
import logging
import logging.handlers
import sys
from datetime import datetime
from pathlib import Path
from typing import Final

import platformdirs

from core.base.text import visible
from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.records.times import parse_time

APP: Final = "ralphdeck"
MAX_LOG_BYTES: Final = 1_000_000  # Size at which the log file is rotated to `ralphdeck.log.1`.


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


def log_file() -> Path:
    return platformdirs.user_state_path(APP) / "ralphdeck.log"


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
