"""What all lists have in common."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.tui.user import NOW, User, make_app, open_dashboard, set_times
from tui.kit.filter_line import FilterLine
from tui.screens.list_screen import ListScreen


async def test_an_unreadable_list_is_not_shown_as_empty(tmp_path: Path, home: Path) -> None:
    shared = tmp_path / "broken/.aiwg/ralph/shared"
    for name in ("patterns/error-patterns.json", "patterns/anti-patterns.json", "curation/ledger.jsonl"):
        file = shared / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{garbage\n")
    set_times(tmp_path / "broken", NOW - timedelta(days=1))  # what was written just now may be torn, and is read again
    async with open_dashboard(tmp_path / "broken", home, size=(80, 24)) as user:
        await user.sees("No session yet")
        for place, text in (
            ("patterns", "2 files cannot be read, so records may be missing (F: details)"),
            ("log", "The decision log has chain breaks: "),
        ):
            await user.go(place)
            await user.sees(text)
        await user.press("F")
        await user.sees("error-patterns.json")


@pytest.mark.parametrize(("moved", "row"), [(0, 0), (1, 3)])
async def test_the_cursor_stays_on_top_while_more_records_are_read_unless_it_was_moved(
    sample: Path, home: Path, moved: int, row: int
) -> None:
    async with open_dashboard(sample, home) as user:
        place, whole = user.place, user.app.view
        assert isinstance(place, ListScreen)
        newest = list(user.table.keys)[:2]
        loops = {key: loop for key, loop in whole.snapshot.loops.items() if key not in newest}
        part = replace(whole, snapshot=whole.snapshot.with_changes(loops=loops, complete=False))
        user.app.view = part
        place.refresh_view(part, None)
        assert place.query_one(FilterLine)._count.plain.startswith(f"{place.total(part)} read so far")
        user.table.move(moved)
        user.app.view = whole
        place.refresh_view(whole, None)
        assert user.table.cursor == row
        assert place.query_one(FilterLine)._count.plain.startswith(f"{place.total(whole)}")


async def test_an_unreadable_file_is_named_above_the_records_of_the_others(sample: Path, home: Path) -> None:
    file = sample / ".aiwg/ralph/shared/patterns/error-patterns.json"
    file.write_text(file.read_text()[: file.stat().st_size // 2])
    set_times(sample, NOW - timedelta(days=1))
    async with open_dashboard(sample, home, size=(80, 24), place="patterns") as user:
        await user.sees("error-patterns.json cannot be read, so records may be missing (F: details)")
        assert user.table.keys
        await user.filter("state:wrong")
        await user.sees("must be one of", "error-patterns.json cannot be read")


async def test_panes_are_resized_and_keep_their_sizes(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(80, 40), place="patterns") as user:
        await user.settled()
        before = user.table.size.height
        await user.press("plus", "plus")
        larger = user.table.size.height
        assert larger > before
        await user.press("tab", "plus")
        assert user.table.size.height < larger, "the pane that has focus grows"
        await user.press("minus")
        user.app.go("loops")
        await user.settled()
        assert user.table.size.height == before, "each screen has its own sizes"
    app = make_app(sample, home, place="patterns")
    app.user_state.load()
    async with app.run_test(size=(80, 40)) as pilot:
        again = User(app, pilot)
        await again.settled()
        await again.until(lambda: again.table.size.height == larger, "the sizes of the last run")
        await pilot.resize_terminal(160, 40)
        await again.settled()
        assert again.table.size.height > 30, "side by side the panes have other sizes"


async def test_a_list_is_sorted_by_columns_from_the_left_and_reversed(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.press("S")
        await user.sees("what ↑")
        await user.press("S")
        await user.sees("needs ↑")
        await user.press("S")
        await user.sees("status ↑")
        first = user.table.keys[0]
        await user.press("O")
        await user.sees("status ↓")
        assert user.table.keys[0] != first


async def test_actions_that_the_footer_does_not_offer_are_listed_by_a_key(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        assert ". more" in user.key_line()
        await user.press("full_stop")
        await user.sees("More actions", "open file", "reverse order")
        await user.press("escape")
        await user.filter("nothing like this")
        await user.press("full_stop")
        assert "open file" not in user.text(), "nothing is under the cursor"


async def test_fields_and_values_of_the_filter_are_completed(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await user.settled()
        keys, total = user.key_line(), len(user.table.keys)
        await user.press("slash")
        await user.type("stat")
        assert user.key_line().startswith(" tab state:")
        await user.press("tab")
        assert user.place.query_one(FilterLine).text == "state:"
        assert user.key_line().startswith(" tab state:candidate  state:established")
        await user.type("pr")
        assert user.key_line().startswith(" tab state:proven   ")
        await user.press("right")
        assert user.place.query_one(FilterLine).text == "state:proven"
        assert 0 < len(user.table.keys) < total
        await user.press("tab")
        assert user.in_focus(user.table), "the filter is complete: tab goes to the list"
        await user.press("slash", "escape")
        assert user.key_line() == keys
