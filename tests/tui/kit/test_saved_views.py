"""Links from place to place, the way back, and the guard against keys that were typed for the place before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.base.errors import BadInput
from core.index.review_items import INVERSION, OFFER
from core.show.filter_parser import parse_query
from core.show.pattern_filter import PATTERN_FIELDS
from core.show.work import FIELDS
from tests.tui.screens.review_steps import at_question, front
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.actions import PLACES
from tui.kit.fields import FilterLine
from tui.kit.user_state import (
    BUILT_IN,
    MOST_VIEWS,
    SavedView,
    UserState,
    delete_view,
    own_views,
    rename_view,
    save_view,
)
from tui.screens.context import ContextScreen
from tui.screens.dialogs import ViewList

ONE = SavedView("mine", "patterns", "uses:<3 is:pinned", "uses up", "Why")


def kept(folder: Path, views: Any = ()) -> UserState:
    file = folder / "state.json"
    documents = dict(enumerate(views, 1)) if isinstance(views, (list, tuple)) else views
    file.write_text(json.dumps({"views": documents}))
    made = UserState(file, "project")
    made.load()
    return made


def test_a_view_is_saved_replaced_renamed_and_deleted(tmp_path: Path) -> None:
    memory = kept(tmp_path)
    other = SavedView("other", "log")
    save_view(memory, ONE)
    save_view(memory, other)
    newer = SavedView("mine", "loops")
    save_view(memory, newer)
    assert own_views(memory) == (newer, other)
    with pytest.raises(BadInput, match="already a view named 'other'"):
        rename_view(memory, "mine", "other")
    rename_view(memory, "mine", "mine too")
    rename_view(memory, "other", "other")
    assert [view.name for view in own_views(memory)] == ["mine too", "other"]
    delete_view(memory, "other")
    assert [view.name for view in own_views(memory)] == ["mine too"]


@pytest.mark.parametrize(
    "views",
    ["{", 5, [5, None], [{"name": "x"}], [{"name": "", "place": "log"}], [{"name": "x", "place": 7}],
     [{"name": "x" * 99, "place": "log"}], [{"name": "x", "place": "nowhere"}]],
)  # fmt: skip
def test_invalid_views_are_skipped(tmp_path: Path, views: Any) -> None:
    assert own_views(kept(tmp_path, views)) == ()


def test_a_view_of_the_former_memory_screen_opens_loops(tmp_path: Path) -> None:
    (view,) = own_views(kept(tmp_path, [{"name": "x", "place": "memory", "filter": "-kind:task outcome:failure"}]))
    assert view == SavedView("x", "loops", "-is:task outcome:failure")
    assert not parse_query(view.filter, FIELDS).problems


def test_the_number_of_matches_is_limited(tmp_path: Path) -> None:
    memory = kept(tmp_path, [{"name": f"view {n}", "place": "log"} for n in range(MOST_VIEWS + 9)])
    assert len(own_views(memory)) == MOST_VIEWS
    with pytest.raises(BadInput, match="delete one first"):
        save_view(memory, ONE)
    save_view(memory, SavedView("view 3", "loops"))


def test_two_dashboards_keep_each_others_saved_values(tmp_path: Path) -> None:
    one, other = UserState(tmp_path / "state.json", "/one"), UserState(tmp_path / "state.json", "/two")
    one.set_here("place", "log")
    other.set_here("place", "loops")
    save_view(one, ONE)
    one.save()
    other.set("theme", "light")
    other.save()
    again = UserState(tmp_path / "state.json", "/one")
    again.load()
    assert own_views(again) == (ONE,)
    assert (again.get("theme"), again.get_here("place")) == ("light", "log")


def test_the_query_language_supports_all_built_in_views() -> None:
    for view in BUILT_IN:
        if view.place == "patterns":
            assert parse_query(view.filter, PATTERN_FIELDS).problems == ()


async def test_the_current_list_is_saved_and_opened_again(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.filter("state:proven type:error")
        await user.press("S", "w", "V")
        assert isinstance(user.app.screen, ViewList)
        await user.press("s")
        await user.paste("my errors [b]")
        await user.press("enter")
        await user.sees("my errors [b]", "yours", "by state, Why")
        await user.press("escape")
        rows = list(user.table.keys)
        await user.go("log")
        await user.press("V", "enter")
        await user.arrives("patterns")
        await user.settled()
        assert list(user.table.keys) == rows
        await user.sees("state:proven type:error", "by state")

        await user.press("V", "j", "d")
        await user.sees("Built-in views cannot")
        await user.press("k", "d")
        assert own_views(user.app.user_state) == ()
        await user.press("escape")

        compact = user.text().splitlines()
        await user.press("Z")
        assert user.app.user_state.get("density") == "comfortable"
        assert user.text().splitlines()[2] == compact[2] and user.text().splitlines()[4] != compact[4]
        await user.press("G")
        assert user.table.cursor == len(rows) - 1 and user.table.cursor_key == rows[-1]
        await user.pilot.click(user.table, offset=(10, 2))
        assert user.table.cursor == user.table.scroll_offset.y // 2, "a click on the second line is on the row"


NULL = "pat-error-null-check-015"
TYPED = "Fix the flaky login test"


async def at(user: User, place: str) -> None:
    """Wait until a place is in front and drawn."""
    await user.until(lambda: user.place.place == place, f"{place} in front")
    await user.settled()


def task(user: User) -> str:
    return user.place.query_one(FilterLine).text


async def test_esc_returns_from_context_and_a_typed_task_is_kept(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="context") as user:
        await user.press("slash")
        await user.paste(TYPED)
        await user.press("enter")
        await user.settled()
        await user.go("patterns")
        assert user.table.go_to(NULL)
        await user.press("i")
        await at(user, "context")
        assert isinstance(user.place, ContextScreen) and task(user) != TYPED
        assert user.place.table.cursor_key == NULL, "the cursor is on the pattern that the link came from"
        await user.sees("esc back to Patterns")
        await user.press("escape")
        await at(user, "patterns")
        assert user.table.cursor_key == NULL
        await user.go("context")
        assert task(user) == TYPED
        await user.go("loops")
        key = user.table.cursor_key
        await user.press("i")
        await at(user, "context")
        assert task(user) != TYPED
        await user.press("escape")
        await at(user, "loops")
        assert user.table.cursor_key == key
        assert user.app.user_state.get_here("context-task") == TYPED
        await user.press("i")
        await at(user, "context")
        await user.press("slash", "ctrl+u")
        await user.paste(typed_after := f"{TYPED} again")
        await user.press("enter", "escape")
        await at(user, "loops")
        await user.go("context")
        assert task(user) == typed_after


async def test_esc_returns_from_review_and_along_several_links(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True) as user:
        offered = next(item.subject for item in user.app.view.queue if item.kind == OFFER)
        await user.go("loops")
        assert user.table.go_to(offered)
        await user.press("e")
        await at(user, "review")
        assert front(user) == offered
        await user.press("escape")
        await at(user, "loops")
        assert user.table.cursor_key == offered
        subject = await at_question(user, INVERSION)
        await user.press("i")
        await at(user, "context")
        await user.press("enter")
        await at(user, "patterns")
        await user.press("escape")
        await at(user, "context")
        await user.press("escape")
        await at(user, "review")
        assert front(user) == subject


async def test_a_deciding_key_typed_on_the_previous_screen_does_nothing(sample: Path, home: Path) -> None:
    seconds = [100.0]
    async with open_dashboard(sample, home, clock=lambda: seconds[0], place="loops") as user:
        known = len(user.app.view.snapshot.decisions)
        seconds[0] += 60.0
        await user.press("3", "p")
        await at(user, "patterns")
        assert len(user.app.view.snapshot.decisions) == known
        assert "p ignored" in user.toasts()[-1]
        seconds[0] += 0.49
        await user.decides("p")
        assert len(user.app.view.snapshot.decisions) == known
        await user.press("j", "k")
        seconds[0] += 0.01
        await user.decides("p")
        assert len(user.app.view.snapshot.decisions) == known + 1
        seconds[0] += 60.0
        await user.press("2", "a")
        await user.settled()
        assert user.place.place == "review" and len(user.app.view.snapshot.decisions) == known + 1


async def test_obvious_refusals_need_no_message(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, now=NOW) as user:
        for place in ("loops", "patterns", "review"):
            await user.go(place)
            number = PLACES[place][0]
            await user.press("escape", number)
            assert user.toasts() == []


async def test_a_dialog_replaces_the_keys_of_the_screen(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.press("d")
        assert "esc cancel" in user.key_line() and "enter" in user.key_line()
        assert "promote" not in user.key_line() and "filter" not in user.key_line()
        await user.pilot.click(offset=(user.key_line().index("esc cancel"), 39))
        await user.settled()
        assert user.place.place == "patterns" and "promote" in user.key_line()
