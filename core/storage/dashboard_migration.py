"""Move what earlier versions kept in `dashboard.json` into the tables of the user's own state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tinydb import TinyDB, where

from core.base.errors import Unwritable
from core.base.time_parsing import LAST_SEEN, LAST_VISIT
from core.storage.user_tables import PROJECTS, SETTINGS, VIEWS, VISITS

if TYPE_CHECKING:
    from core.storage.user_store import UserStore


def migrate_dashboard(old: Path, store: UserStore) -> None:
    """Add the values of the old file that the store does not have, and rename the file to `*.migrated`.

    A kill in between repeats that. A file that cannot be parsed has nothing to add. Raises Unwritable.
    """
    with store.transaction() as tables:
        values = _parsed(_read(old))
        for name, value in values.items() if isinstance(values, dict) else ():
            if name == "projects" and isinstance(value, dict):
                for project, kept in value.items():
                    _add_project(tables, project, kept)
            elif name == "views":
                views = _parsed(value)
                for view in views if isinstance(views, list) else ():
                    if isinstance(view, dict) and "name" in view:
                        _add(tables, VIEWS, "name", view)
            elif isinstance(value, str):
                _add(tables, SETTINGS, "name", {"name": name, "value": value})
    try:
        old.rename(old.with_name(f"{old.name}.migrated"))
    except FileNotFoundError:
        pass  # another process was faster
    except OSError as error:
        raise Unwritable(f"cannot rename {old}: {error.strerror}") from None


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""


def _parsed(text: Any) -> Any:
    """Parse JSON; None if it is not valid."""
    try:
        return json.loads(text)
    except (TypeError, ValueError, RecursionError):
        return None


def _add_project(tables: TinyDB, project: str, kept: Any) -> None:
    if isinstance(kept, dict):
        visits = {name: kept.pop(name) for name in (LAST_SEEN, LAST_VISIT) if name in kept}
        _add(tables, PROJECTS, "project", {"project": project, "values": kept})
        if visits:
            _add(tables, VISITS, "project", {"project": project, **visits})


def _add(tables: TinyDB, table: str, key: str, document: dict[str, Any]) -> None:
    if not tables.table(table).contains(where(key) == document[key]):
        tables.table(table).insert(document)
