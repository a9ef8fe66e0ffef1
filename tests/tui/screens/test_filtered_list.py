"""What all lists have in common."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from tests.tui.user import NOW, open_dashboard, set_times


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
