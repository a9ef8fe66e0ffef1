from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.queries.filter_parser import parse_query
from core.queries.pattern_filter import PATTERN_FIELDS
from tests.tui.story import story
from tui.screens.view_list import ViewList
from tui.state.saved_views import BUILT_IN, MOST_VIEWS, SavedView, delete_view, own_views, rename_view, save_view
from tui.state.user_state import UserState

ONE = SavedView("mine", "patterns", "uses:<3 is:pinned", "uses up", "Why")


def kept(folder: Path, views: Any = ()) -> UserState:
    made = UserState(folder / "state.json", "project")
    made.set("views", views if isinstance(views, str) else json.dumps(views))
    return made


def test_a_view_is_saved_replaced_renamed_and_deleted(tmp_path: Path) -> None:
    memory = kept(tmp_path)
    other = SavedView("other", "log")
    assert save_view(memory, ONE) and save_view(memory, other)
    newer = SavedView("mine", "loops")
    assert save_view(memory, newer)
    assert own_views(memory) == (newer, other)
    assert not rename_view(memory, "mine", "other")
    assert rename_view(memory, "mine", "mine too") and rename_view(memory, "other", "other")
    assert [view.name for view in own_views(memory)] == ["mine too", "other"]
    delete_view(memory, "other")
    assert [view.name for view in own_views(memory)] == ["mine too"]


@pytest.mark.parametrize(
    "views",
    ["{", "[" * 9_000, "5", [5, None], [{"name": "x"}], [{"name": "", "place": "log"}], [{"name": "x", "place": 7}],
     [{"name": "x" * 99, "place": "log"}], [{"name": "x", "place": "nowhere"}]],
)  # fmt: skip
def test_what_is_no_view_is_forgotten(tmp_path: Path, views: Any) -> None:
    assert own_views(kept(tmp_path, views)) == ()


def test_there_are_not_more_than_can_be_looked_through(tmp_path: Path) -> None:
    memory = kept(tmp_path, [{"name": f"view {n}", "place": "log"} for n in range(MOST_VIEWS + 9)])
    assert len(own_views(memory)) == MOST_VIEWS
    assert not save_view(memory, ONE)
    assert save_view(memory, SavedView("view 3", "loops"))


def test_what_two_dashboards_keep_stays(tmp_path: Path) -> None:
    one, other = UserState(tmp_path / "state.json", "/one"), UserState(tmp_path / "state.json", "/two")
    one.set_here("place", "log")
    other.set_here("place", "memory")
    save_view(one, ONE)
    one.save()
    other.set("theme", "light")
    other.save()
    again = UserState(tmp_path / "state.json", "/one")
    again.load()
    assert own_views(again) == (ONE,)
    assert (again.get("theme"), again.get_here("place")) == ("light", "log")


def test_the_query_language_says_all_that_is_built_in() -> None:
    for view in BUILT_IN:
        if view.place == "patterns":
            assert parse_query(view.filter, PATTERN_FIELDS).problems == ()


async def test_what_is_shown_is_saved_and_opened_again(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(80, 24)) as told:
        await told.go("patterns")
        await told.filter("state:proven type:error")
        await told.press("S", "w", "V")
        assert isinstance(told.app.screen, ViewList)
        await told.press("s")
        await told.paste("my errors [b]")
        await told.press("enter")
        await told.sees("my errors [b]", "yours", "by uses, Why")
        await told.press("escape")
        rows = list(told.table.keys)
        await told.go("log")
        await told.press("V", "enter")
        await told.until(lambda: told.app.screen.id == "patterns", "Patterns in front")
        await told.settled()
        assert list(told.table.keys) == rows
        await told.sees("state:proven type:error", "by uses")

        await told.press("V", "j", "d")
        await told.sees("this one is built in")
        await told.press("k", "d")
        assert own_views(told.app.user_state) == ()
        await told.press("escape")

        compact = told.text().splitlines()
        await told.press("Z")
        assert told.app.user_state.get("density") == "comfortable"
        assert told.text().splitlines()[2] == compact[2] and told.text().splitlines()[4] != compact[4]
        await told.press("G")
        assert told.table.cursor == len(rows) - 1 and told.table.cursor_key == rows[-1]
        await told.pilot.click(told.table, offset=(10, 2))
        assert told.table.cursor == told.table.scroll_offset.y // 2, "a click on the second line is on the row"
