from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.state.user_state import MAX_PROJECTS, UserState


def test_saved_values_are_loaded_by_the_next_run(tmp_path: Path) -> None:
    file = tmp_path / "state" / "ralphdeck.json"
    kept = UserState(file, "/one")
    kept.set("theme", "light")
    kept.set_here("place", "review")
    kept.save()
    for project, place in (("/one", "review"), ("/two", "")):
        again = UserState(file, project)
        again.load()
        assert (again.get("theme"), again.get_here("place")) == ("light", place)
    assert list(file.parent.iterdir()) == [file]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'"x"',
        b"\xff",
        b"[" * 100_000,
        b'{"projects": 5, "theme": 7}',
        b'{"projects": {"/one": 3}}',
    ],
)
def test_an_unexpected_cache_file_is_ignored(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "state.json"
    file.write_bytes(text)
    kept = UserState(file, "/one")
    kept.load()
    assert kept.get("theme", "dark") == "dark"
    assert kept.get_here("place", "loops") == "loops"
    kept.set_here("place", "log")
    kept.save()
    assert json.loads(file.read_text())["projects"]["/one"]["place"] == "log"


def test_removing_a_project_keeps_the_values_of_all_projects(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    before = UserState(file, "demo")
    before.set("theme", "light")
    before.set_here("memory-filter", "task")
    before.save()
    kept = UserState(file, "demo")
    kept.load()
    kept.forget_here()
    kept.save()
    assert (kept.get("theme"), kept.get_here("memory-filter")) == ("light", "")


def test_only_the_newest_projects_are_saved(tmp_path: Path) -> None:
    file = tmp_path / "state.json"
    for n in range(MAX_PROJECTS + 5):
        kept = UserState(file, f"/project-{n}")
        kept.load()
        kept.set_here("place", "log")
        kept.save()
    projects = list(json.loads(file.read_text())["projects"])
    assert len(projects) == MAX_PROJECTS
    assert projects[-1] == f"/project-{MAX_PROJECTS + 4}"


def test_an_unwritable_folder_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    kept = UserState(tmp_path / "file" / "state.json", "/one")
    kept.set("theme", "light")
    kept.save()
