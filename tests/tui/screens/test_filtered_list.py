"""What all lists have in common."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.tui.user import NOW, open_dashboard, set_times
from tui.widgets.filter_line import FilterLine


async def test_an_unreadable_list_is_not_shown_as_empty(tmp_path: Path, home: Path) -> None:
    shared = tmp_path / "broken/.aiwg/ralph/shared"
    for name in ("patterns/error-patterns.json", "patterns/anti-patterns.json", "curation/ledger.jsonl"):
        file = shared / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{garbage\n")
    set_times(tmp_path / "broken", NOW - timedelta(days=1))  # what was written just now may be torn, and is read again
    async with open_dashboard(tmp_path / "broken", home, size=(80, 24)) as user:
        await user.sees("No loops yet")
        for place, text in (
            ("patterns", "2 files cannot be read (F: details)"),
            ("log", "1 file cannot be read (F"),
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
        newest = list(user.table.keys)[:2]
        loops = {key: loop for key, loop in whole.snapshot.loops.items() if key not in newest}
        part = replace(whole, snapshot=whole.snapshot.with_changes(loops=loops, complete=False))
        user.app.view = part
        place.refresh_view(part, None)
        assert place.query_one(FilterLine)._count.plain == f"{len(loops)} read so far, newest first"
        user.table.move(moved)
        user.app.view = whole
        place.refresh_view(whole, None)
        assert user.table.cursor == row
        assert place.query_one(FilterLine)._count.plain == f"{len(whole.snapshot.loops)}, newest first"
