"""Write the debug sessions of the attempts of an agent's session (docs/debug-memory.md#sessions-of-attempts)."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from core.base.errors import BadInput, RalphdeckError, UnknownRecord

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


def log_size(project: ProjectPaths, task_id: str, number: int) -> int:
    """Return the size of the log of an attempt in bytes, 0 if there is none."""
    from core.tasks.folders import TaskFolder, find_attempt_folder

    try:
        return find_attempt_folder(TaskFolder.of(project, task_id), number).actions.lstat().st_size
    except (RalphdeckError, OSError):
        return 0


def write_debug_session(project: ProjectPaths, task_id: str, number: int, now: datetime) -> str:
    """Write the debug session of an attempt; returns its ID, "" if no check failed or the attempt is gone.

    Repeating the call changes nothing, unless the log has grown. Raises Conflict or Unwritable.
    """
    from core.tasks.history import read_attempt
    from core.tasks.session_files import make_session, merge_records, save_session

    try:
        detail = read_attempt(project, task_id, number)
    except (UnknownRecord, BadInput):
        return ""
    record = make_session(detail.attempt, detail.actions, now, root=str(project.project))
    if record is None:
        return ""
    save_session(project, record, merge_records)
    return str(record["session_id"])
