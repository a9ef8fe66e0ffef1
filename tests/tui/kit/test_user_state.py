from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from core.base.formatting import LAST_VISIT
from core.files.user_files import PROJECTS, damaged_files, read_tables
from tui.kit.user_state import MAX_PROJECTS, UserState


def loaded(file: Path, project: str) -> UserState:
    state = UserState(file, project)
    state.load()
    return state


def test_saved_values_are_loaded_by_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "state" / "state.json"
    kept = UserState(file, "/one")
    kept.set("theme", "light")
    kept.set_here("place", "review")
    kept.set_visit(LAST_VISIT, "2026-11-22T09:00:00Z")
    kept.save()
    for project, place, visit in (("/one", "review", "2026-11-22T09:00:00Z"), ("/two", "", "")):
        again = loaded(file, project)
        assert (again.get("theme"), again.get_here("place"), again.visit(LAST_VISIT)) == ("light", place, visit)


def test_dashboards_on_one_project_keep_each_others_values(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    one, other = loaded(file, "/one"), loaded(file, "/one")
    one.set_here("place", "review")
    one.set("theme", "light")
    one.save()
    other.set_here("patterns-sort", "uses up")
    other.set("glyphs", "ascii")
    other.save()
    for state in (other, loaded(file, "/one")):
        assert (state.get("theme"), state.get("glyphs")) == ("light", "ascii")
        assert (state.get_here("place"), state.get_here("patterns-sort")) == ("review", "uses up")


@pytest.mark.parametrize(
    "text",
    [
        b'{"settings": 5}',
        b'{"settings": {"1": {"name": "theme", "value": 7}, "2": {"name": [], "value": "x"}, "3": {}}}',
        b'{"projects": {"1": {"project": "/one", "values": 3}}, "visits": {"1": {"project": "/one", "last_seen": 3}}}',
    ],
)
def test_unexpected_values_are_ignored(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(text)
    kept = loaded(file, "/one")
    assert (kept.get("theme", "dark"), kept.get_here("place", "loops"), kept.damage) == ("dark", "loops", "")
    kept.set_here("place", "log")
    kept.save()
    assert loaded(file, "/one").get_here("place") == "log"


def test_a_damaged_file_is_reported_and_moved_aside(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    file.write_text("{")
    kept = loaded(file, "/one")
    assert "cannot be parsed" in kept.damage
    kept.set("theme", "light")
    kept.save()
    assert (loaded(file, "/one").get("theme"), loaded(file, "/one").damage) == ("light", "")
    assert [one.read_text() for one in damaged_files(file)] == ["{"]


def test_removing_a_project_keeps_the_values_of_all_projects(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    before = UserState(file, "demo")
    before.set("theme", "light")
    before.set_here("memory-filter", "task")
    before.set_visit(LAST_VISIT, "2026-11-22T09:00:00Z")
    before.save()
    kept = loaded(file, "demo")
    kept.forget_here()
    kept.save()
    for state in (kept, loaded(file, "demo")):
        assert (state.get("theme"), state.get_here("memory-filter"), state.visit(LAST_VISIT)) == ("light", "", "")


def test_only_the_newest_projects_are_saved(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for n in (*range(MAX_PROJECTS), 0, MAX_PROJECTS):
        kept = loaded(file, f"/project-{n}")
        kept.set_here("place", "log")
        kept.save()
    projects = [row["project"] for row in read_tables(file).rows(PROJECTS)]
    assert len(projects) == MAX_PROJECTS
    assert "/project-1" not in projects and projects[-2:] == ["/project-0", f"/project-{MAX_PROJECTS}"]


def test_a_project_with_undecodable_bytes_in_its_path_is_saved(tmp_path: Path) -> None:
    kept = UserState(tmp_path / "state.json", "/caf\udce9")
    kept.set_here("place", "log")
    kept.save()
    assert loaded(tmp_path / "state.json", "/caf\udce9").get_here("place") == "log"


def test_an_unwritable_folder_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = UserState(tmp_path / "file" / "state.json", "/one")
    kept.set("theme", "light")
    kept.save()
    assert kept.get("theme") == "light"


def test_a_visit_soon_after_another_one_continues_it(tmp_path: Path) -> None:
    state, began = UserState(tmp_path / "state.json", "shop"), datetime(2026, 11, 22, 9, tzinfo=UTC)
    assert state.begin_visit(began) is None
    ended = began + timedelta(hours=2)
    state.set_visit(LAST_VISIT, ended.isoformat())
    assert state.begin_visit(ended + timedelta(minutes=5)) is None, "still the first visit"
    monday = ended + timedelta(days=2)
    assert state.begin_visit(monday) == ended
    state.set_visit(LAST_VISIT, monday.isoformat())
    assert state.begin_visit(monday + timedelta(minutes=5)) == ended, "after a restart"
    assert state.begin_visit(monday + timedelta(hours=1)) == monday
