from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.storage.dashboard_migration import migrate_dashboard
from core.storage.user_store import UserStore
from core.storage.user_tables import PROJECTS, SETTINGS, VIEWS, VISITS, read_tables

VIEW = {"name": "mine", "place": "patterns", "filter": "uses:<3", "sort": "", "tab": ""}
OLD: dict[str, Any] = {
    "theme": "light",
    "views": json.dumps([VIEW, 5]),
    "projects": {"/one": {"place": "log", "last_seen": "2026-11-20T08:00:00Z"}, "/two": {}, "/bad": 3},
    "odd": [1],
}


def migrate(folder: Path, old: Any) -> Path:
    file, path = folder / "dashboard.json", folder / "state.json"
    file.write_bytes(old if isinstance(old, bytes) else json.dumps(old).encode())
    migrate_dashboard(file, UserStore(path))
    assert not file.exists() and (folder / "dashboard.json.migrated").exists()
    return path


def test_settings_projects_visits_and_views_are_moved(tmp_path: Path) -> None:
    found = read_tables(migrate(tmp_path, OLD))
    assert found.rows(SETTINGS) == [{"name": "theme", "value": "light"}]
    assert found.rows(VIEWS) == [VIEW]
    assert found.rows(PROJECTS) == [
        {"project": "/one", "values": {"place": "log"}},
        {"project": "/two", "values": {}},
    ]
    assert found.rows(VISITS) == [{"project": "/one", "last_seen": "2026-11-20T08:00:00Z"}]
    assert json.loads((tmp_path / "dashboard.json.migrated").read_bytes()) == OLD


def test_newer_values_win_when_a_migration_is_repeated(tmp_path: Path) -> None:
    with UserStore(tmp_path / "state.json").transaction() as tables:
        tables.table(SETTINGS).insert({"name": "theme", "value": "dark"})
    assert read_tables(migrate(tmp_path, OLD)).rows(SETTINGS) == [{"name": "theme", "value": "dark"}]


@pytest.mark.parametrize(
    "old", [b"", b"\xff", b"[" * 100_000, [], {"projects": 5, "views": 5, "theme": 7}, {"views": "["}]
)
def test_an_unexpected_file_adds_nothing(tmp_path: Path, old: Any) -> None:
    assert read_tables(migrate(tmp_path, old)).tables == {}
