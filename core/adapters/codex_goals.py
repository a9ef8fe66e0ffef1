"""Goals of Codex sessions, from its database (docs/adapter-files.md#codex)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.adapters.codex_payloads import normalize_status
from core.adapters.codex_records import Goal
from core.adapters.tables import read_table
from core.adapters.values import MAX_LABEL, MAX_TEXT, clip

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles

_TABLE: Final = "thread_goals"
_COLUMNS: Final = (
    *("thread_id", "objective", "status", "token_budget", "tokens_used", "time_used_seconds"),
    *("created_at_ms", "updated_at_ms"),
)
_REQUIRED: Final = frozenset({"thread_id", "status"})


def list_databases(files: RunnerFiles, home: Path) -> list[Path]:
    """Return the files that can contain goals; their names have version numbers, and they were moved once."""
    folders = [home, home / "sqlite"]
    if other := files.folders.environment.get("CODEX_SQLITE_HOME", ""):
        folders.append(Path(other))
    return [
        path
        for folder in folders
        for name in ("goals_*.sqlite", "state_*.sqlite")
        for path in files.names(folder, name)
    ]


def read_goals(files: RunnerFiles, home: Path) -> dict[str, Goal] | None:
    """Return goals by session ID, from the database that was updated last; None if no database has the table."""
    found = [goals for path in list_databases(files, home) if (goals := _read(files, path)) is not None]
    return max(found, key=lambda goals: max((one.updated_ms for one in goals.values()), default=-1), default=None)


def _read(files: RunnerFiles, path: Path) -> dict[str, Goal] | None:
    rows = read_table(files, path, _TABLE, _COLUMNS, _REQUIRED)
    return {str(row[0])[:MAX_LABEL]: _goal(row) for row in rows} if rows is not None else None


def _goal(row: tuple[Any, ...]) -> Goal:
    return Goal(
        objective=clip(row[1], MAX_TEXT) if isinstance(row[1], str) else "",
        status=normalize_status(row[2]),
        token_budget=_count(row[3]),
        tokens_used=_count(row[4]),
        seconds_used=_count(row[5]),
        created_ms=_count(row[6]) or 0,
        updated_ms=_count(row[7]) or 0,
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
