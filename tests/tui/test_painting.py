"""The dashboard paints only what has changed."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from core.show.loops import LoopOrder
from tests.tui.kit.hosting import painted_lines
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.actions import PLACES
from tui.screens.list_screen import SLOW_TICKS
from tui.screens.loops import LoopsScreen


async def change(user: User, path: Path, **fields: Any) -> None:
    """Write fields of a JSON file, and let the engine read it."""
    async with user.engine_held():
        path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
        user.app.engine.submit(lambda: user.app.engine._read(lambda: user.app.project.apply([path])))
    await user.settled()


@pytest.mark.parametrize("place", PLACES)
async def test_an_idle_dashboard_paints_nothing(sample: Path, home: Path, place: str) -> None:
    begin = NOW + timedelta(days=30)
    async with open_dashboard(sample, home, now=begin) as user:

        async def idle(seconds: Iterable[int]) -> None:
            for second in seconds:
                user.app.project._clock = lambda: begin + timedelta(seconds=second)  # noqa: B023
                user.app._tick()
                if second % SLOW_TICKS == 0:
                    user.app.engine.submit(user.app.engine.idle)
                await user.settled()

        await user.go(place)
        await idle([0])
        with painted_lines() as lines:
            await idle(range(1, 3 * SLOW_TICKS))
        assert not lines


async def test_a_changed_loop_paints_its_line_and_no_other(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        key = next(key for key in user.table.keys[1:] if (sample / f".aiwg/ralph/loops/{key}/state.json").exists())
        with painted_lines() as lines:
            await change(user, sample / f".aiwg/ralph/loops/{key}/state.json", task="Another task")
        assert "Another task" in user.row(key)
        assert lines == {user.table.region.y + 1 + user.table.keys.index(key)}


@pytest.mark.parametrize("sort", [("newest", True), ("sign", True), ("sign", False), ("status", True), ("task", False)])
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
