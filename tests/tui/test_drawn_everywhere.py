"""All screens on plain terminals, painting only what changed, and without leaks."""

from __future__ import annotations

import gc
import json
import sys
from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.show.loops import LoopOrder
from tests.tui.kit.hosting import painted_lines
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.actions import PLACES
from tui.kit.looks import ascii_text
from tui.screens.list_screen import SLOW_TICKS
from tui.screens.loops import LoopsScreen

OVERLAYS = {
    "help": ("question_mark",),
    "palette": ("colon",),
    "findings": ("F",),
    "views": ("V",),
    "what-if": ("3", "t"),
    "compare": ("L", "H"),
    "reason": ("3", "d"),
    "bulk preview": ("3", "asterisk", "d"),
    "replay": ("7", *("j",) * 8, "enter"),
    "extraction": ("4", *("j",) * 10, "e"),
    "answers": ("2", "full_stop"),
    "actions": ("3", "full_stop"),
    "wide rows": ("Z",),
    "filter": ("3", "slash", "x"),
}
"""Keys from Loops to everything that lies over a place, one after the other: marks and filters stay."""


async def test_every_screen_and_dialog_is_pure_ascii_with_ascii_glyphs(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(200, 50), glyphs="ascii") as user:
        for place in list(PLACES)[1:]:
            await user.go(place)
            assert not odd_lines(user.text()), place
        await user.go("loops")
        await user.press("A")
        assert odd_lines(user.text()), "the drawn marks are back on the whole screen at once"
        await user.press("A")
        assert not odd_lines(user.text())
        seen = {user.text()}
        for name, keys in OVERLAYS.items():
            await user.press(*keys)
            await user.settled()
            assert not odd_lines(user.text()), name
            assert user.text() not in seen, f"{name} is not open"
            seen.add(user.text())
            while len(user.app.screen_stack) > 1:
                user.app.pop_screen()
                await user.pilot.pause()
            user.app.go("loops")
            await user.settled()


def odd_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.isascii()]


def test_letters_in_data_are_kept_and_glyphs_keep_their_width() -> None:
    assert ascii_text("Grüße, 日本 → …") == "Grüße, 日本 > ~"
    assert len(ascii_text("│─┤❯▌█⚑●◐⊘‖")) == 11


async def test_without_colours_choosing_a_theme_is_refused_with_a_reason(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with open_dashboard(sample, home, theme="light") as user:
        assert user.app.theme == "ansi"
        styles = [
            segment.style
            for strip in user.app.screen._compositor.render_strips()
            for segment in strip
            if segment.style is not None
        ]
        assert all(style.color is None and style.bgcolor is None for style in styles)
        assert any(style.reverse for style in styles), "the cursor and the place in front are still seen"
        await user.press("T")
        assert user.toasts()[-1] == "NO_COLOR is set: themes are disabled"
        assert user.app.user_state.get("theme") == "light", "the choice is kept for terminals with colours"


async def change(user: User, path: Path, **fields: Any) -> None:
    """Write fields of a JSON file, and let the engine read it."""
    async with user.engine_held():
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
        user.app.engine.submit(lambda: user.app.engine._read(lambda: user.app.project.apply([path])))
    await user.settled()


@pytest.mark.usefixtures("drawn_at_once")
async def test_an_idle_dashboard_paints_nothing(sample: Path, home: Path) -> None:
    begin = NOW + timedelta(days=30)
    async with open_dashboard(sample, home, now=begin) as user:

        async def idle(seconds: Iterable[int]) -> None:
            for second in seconds:
                user.app.project._clock = lambda: begin + timedelta(seconds=second)  # noqa: B023
                user.app._tick()
                if second % SLOW_TICKS == 0:
                    user.app.engine.submit(user.app.engine.idle)
                await user.settled()

        for number, place in enumerate(PLACES):
            await user.go(place)
            first = number * 2 * SLOW_TICKS
            await idle([first])
            with painted_lines() as lines:
                await idle(range(first + 1, first + SLOW_TICKS + 2))
            assert not lines, place


@pytest.mark.usefixtures("drawn_at_once")
async def test_a_changed_loop_paints_its_line_and_no_other(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        key = next(key for key in user.table.keys[1:] if (sample / f".aiwg/ralph/loops/{key}/state.json").exists())
        with painted_lines() as lines:
            await change(user, sample / f".aiwg/ralph/loops/{key}/state.json", task="Another task")
        assert "Another task" in user.row(key)
        assert lines == {user.table.region.y + 1 + user.table.keys.index(key)}


@pytest.mark.parametrize("sort", [("newest", True), ("sign", False), ("task", False)])
async def test_a_changed_loop_is_moved_without_sorting_all(
    sample: Path, home: Path, sort: tuple[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_dashboard(sample, home) as user:
        user.place._sort_by(*sort)  # type: ignore[attr-defined]
        compared: list[str] = []

        class CountingOrder(LoopOrder):
            def __init__(self, *args: Any) -> None:
                super().__init__(*args)
                value = self.value

                def counted(key: str) -> Any:
                    compared.append(key)
                    return value(key)

                self.value = counted

        monkeypatch.setattr("tui.screens.loops.rows.LoopOrder", CountingOrder)
        keys = list(user.table.keys)
        key = next(key for key in keys[3:] if (sample / f".aiwg/ralph/loops/{key}/state.json").exists())
        file = sample / f".aiwg/ralph/loops/{key}/state.json"
        at = (NOW - timedelta(seconds=1)).isoformat()
        await change(user, file, task="A task that sorts first", lastUpdate=at, status="running")
        assert 0 < len(compared) <= 2 * len(keys).bit_length()
        after, view = list(user.table.keys), user.app.view
        place = user.place
        assert isinstance(place, LoopsScreen)
        assert after == list(place.select(view, place._query, place._sort))


ROUNDS = 4


def _live_objects() -> Counter[str]:
    """Count the objects of the program, its widgets and its arrays by type."""
    gc.unfreeze()
    gc.collect()
    interval = sys.getswitchinterval()
    sys.setswitchinterval(60)  # another thread could not finish a tuple while the list of objects holds it
    try:
        names = [f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.get_objects()]
    finally:
        sys.setswitchinterval(interval)
    packages = {"core", "tui", "textual", "numpy"}
    # What Textual caches, in a limited number, varies; a widget that is not released shows by its own type.
    cached = ("textual.geometry.", "textual.cache.", "textual.strip.", "textual.style.")
    return Counter(name for name in names if name.partition(".")[0] in packages and not name.startswith(cached))


async def test_opening_all_screens_many_times_leaves_no_objects(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:

        async def open_all() -> None:
            for place in PLACES:
                await user.go(place)
            await user.settled()

        for _ in range(2):
            await open_all()
        counts = [_live_objects()]
        for _ in range(2):
            for _ in range(ROUNDS // 2):
                await open_all()
            counts.append(_live_objects())
    before, between, after = counts
    growth = {name: (between[name] - before[name], count - between[name]) for name, count in after.items()}
    # Textual fills caches of limited size at any time; what is never released grows in each half.
    assert not {name: halves for name, halves in growth.items() if min(halves) >= ROUNDS // 2}
