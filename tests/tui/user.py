"""A small driver over Textual's Pilot, so that a test of the screen reads as a story."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

from textual import events
from textual.app import ScreenStackError
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widget import Widget

from core.base.paths import project_at
from core.base.settings import Settings
from core.project.project import Project
from tests.copying import copy_folder
from tui.app import RalphdeckApp
from tui.engine import PAINT_SECONDS
from tui.kit.actions import PLACES
from tui.kit.fields import ValueField
from tui.kit.record_table import RecordTable
from tui.kit.user_state import UserState
from tui.palette import PaletteServices
from tui.screens.base_screen import SEEN_SCREENS, BaseScreen, load_tables

TREES = Path(__file__).parents[1] / "trees"
NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
TIMEOUT_SECONDS = 15.0
"""Seconds until a story gives up waiting."""
LONGEST_PAUSE = 0.1
"""Seconds between two looks at what a story waits for; a look draws the whole screen."""


class Ticking:
    """A clock on which a second passes between two looks: a person who takes their time."""

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        self._seconds += 1.0
        return self._seconds


def make_app(
    project: Path,
    home: Path,
    *,
    place: str = "loops",
    now: datetime = NOW,
    searches: bool = False,
    extracts: bool = False,
    settings: Settings | None = None,
    readonly: bool = False,
    clock: Callable[[], float] | None = None,
    remembers: bool = False,
    **kept: str,
) -> RalphdeckApp:
    """The dashboard on a project, which opens at `place`, with a fixed clock.

    It has the user state `kept`, and also that of the last run if it `remembers`.

    What Review could ask besides is looked for only on demand, and extraction on completion happens only on demand:
    else the picture depended on the moment.
    """
    settings = settings or Settings()
    opened = Project(project_at(project), settings, by="ana", clock=lambda: now, cache=False, readonly=readonly)
    memory = UserState(home / "state.json", "project")
    if remembers:
        memory.load()
    memory.set(SEEN_SCREENS, " ".join(load_tables()))
    for name, value in kept.items():
        memory.set(name, value)
    return RalphdeckApp(
        lambda: opened,
        opened.project,
        memory,
        home / "keymap.toml",
        searches=searches,
        unattended=extracts,
        first_place=place,
        clock=clock or Ticking(),
    )


class User:
    """What a person does and sees."""

    def __init__(self, app: RalphdeckApp, pilot: Pilot[Any]) -> None:
        self.app = app
        self.services: PaletteServices = app  # mypy checks that the app has all that screens and the palette use
        self.pilot = pilot

    @property
    def place(self) -> BaseScreen:
        """The place in front."""
        screen = self.app.screen
        assert isinstance(screen, BaseScreen), f"a dialog is in front: {screen}"
        return screen

    def in_focus(self, widget: Widget) -> bool:
        """Whether a widget has focus."""
        return self.app.focused is widget

    def shows_list(self) -> bool:
        """Whether the list is drawn, or the details alone."""
        return bool(self.table.display)

    @property
    def table(self) -> RecordTable:
        """The list of the place in front."""
        return self.place.query_one(RecordTable)

    def text(self) -> str:
        """The characters on the screen."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip) for strip in strips)

    async def press(self, *keys: str) -> None:
        """Press keys, one by one."""
        await self.pilot.press(*keys)
        await self._acted(f"{keys}")

    async def type(self, text: str) -> None:
        """Type text faster than it is drawn."""
        for char in text:
            self.app.post_message(events.Key(_character_to_key(char), char))
        await self._acted(text)

    async def _acted(self, keys: str) -> None:
        await self.pilot.pause()  # until the keys have arrived
        await self.until(lambda: self.app.key_queue.is_empty, f"{keys} to have acted")
        await self.pilot.pause()

    async def go(self, place: str) -> None:
        """Go to a place by its number if it is not in front, and wait until it is drawn."""
        if self.place.place != place:
            await self.press(PLACES[place][0])
            await self.until(lambda: self.place.place == place, f"{place} in front")
        await self.settled()

    async def filter(self, text: str) -> None:
        """Replace the filter of the list, and go back to the list."""
        await self.press("slash", "ctrl+u")
        await self.paste(text)
        await self.press("enter")

    async def decides(self, *keys: str) -> None:
        """Press keys that decide something, and wait until it is on disk and on the screen."""
        await self.press(*keys)
        await self.settled()

    def field(self, name: str) -> ValueField:
        """The field of a value."""
        return next(field for field in self.place.query(ValueField) if field.name == name)

    def row(self, key: str) -> str:
        """The line of a record in the list in front."""
        table = self.table
        at = table.position(key)
        assert at is not None, f"{key} is not in the list"
        return "".join(segment.text for segment in table.render_line(at + 1 - table.scroll_offset.y))

    def toasts(self) -> list[str]:
        """Texts of the notices in the footer, oldest first."""
        return [notice.text for notice in self.app.notices]

    def key_line(self) -> str:
        """The bottom line."""
        return self.text().splitlines()[-1]

    async def paste(self, text: str) -> None:
        """Paste text into what has focus: quicker than typing where typing is not the point."""
        assert self.app.focused is not None
        self.app.focused.post_message(events.Paste(text))
        await self.pilot.pause()

    async def until(self, condition: Callable[[], bool], what: str = "") -> None:
        """Wait for something to become true."""
        start, pause = monotonic(), 0.01
        while True:
            with suppress(ScreenStackError):  # while the app replaces its first screen
                if condition():
                    return
                await self.pilot.pause()
            if monotonic() - start > TIMEOUT_SECONDS:
                raise AssertionError(f"timed out waiting for {what or condition}:\n{self.text()}")
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def sees(self, *texts: str) -> None:
        """Wait until all texts are on the screen."""
        await self.until(lambda: all(text in self.text() for text in texts), f"{texts} on the screen")

    async def arrives(self, place: str, key: str | None = None) -> None:
        """Wait until a place is in front, with the cursor on a record."""
        await self.until(lambda: getattr(self.app.screen, "place", "") == place, f"{place} in front")
        if key is not None:
            await self.until(lambda: self.table.cursor_key == key, f"the cursor on {key}")

    async def settled(self) -> None:
        """Wait until the engine has nothing to do and all is drawn."""
        await self.until(lambda: self.app.is_open, "the project to be open")
        done = asyncio.Event()
        loop = asyncio.get_running_loop()

        def reached() -> None:
            loop.call_soon_threadsafe(done.set)

        self.app.engine.submit(reached)
        await asyncio.wait_for(done.wait(), TIMEOUT_SECONDS)
        for _ in range(2):  # what a worker has read may change the layout, and what is drawn then ask for more
            await self.until(lambda: not self._working(), "workers to finish")
            await self.pilot.pause()

    async def searched(self) -> None:
        """Wait until all that Review could ask has been found, and all is drawn."""
        await self.settled()
        engine = self.app.engine
        await self.until(
            lambda: engine.has_searched_once and engine.seconds_left() > PAINT_SECONDS, "what Review could ask"
        )
        await self.settled()

    @asynccontextmanager
    async def engine_held(self) -> AsyncIterator[None]:
        """The engine notices nothing and does nothing meanwhile; after it, what a person did comes first."""
        held, let_go = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            let_go.wait(TIMEOUT_SECONDS)

        self.app.engine.submit(hold)
        await self.until(held.is_set, "the engine to be held")
        try:
            yield
        finally:
            let_go.set()

    def _working(self) -> bool:
        lasting = {"engine", "vectors", "search", "judge"}
        return any(worker.group not in lasting and not worker.is_finished for worker in self.app.workers)


@asynccontextmanager
async def open_dashboard(
    project: Path,
    home: Path,
    *,
    size: tuple[int, int] = (120, 40),
    searches: bool = False,
    **how: Any,
) -> AsyncIterator[User]:
    """The dashboard on a project, loaded and drawn; `how` goes to `make_app`."""
    app = make_app(project, home, searches=searches, **how)
    async with app.run_test(size=size, notifications=True) as pilot:
        user = User(app, pilot)
        await user.until(lambda: app.progress is None, "the first load")
        await (user.searched() if searches else user.settled())
        yield user
        with suppress(ScreenStackError):  # the app has ended
            user.text()  # draws the last state, too


def open_project(folder: Path, by: str = "ana") -> Project:
    """The project of another reviewer or program, loaded, with the clock of the dashboard."""
    opened = Project(project_at(folder), Settings(), by=by, clock=lambda: NOW, cache=False)
    opened.load()
    return opened


def copy_tree(name: str, target: Path) -> Path:
    """A writable copy of one of the reference trees."""
    copy_folder(TREES / name, target)
    set_times(target)
    return target


def set_times(folder: Path, moment: datetime = NOW) -> None:
    """Let everything in a folder be as old as if it had been written at `moment`, whatever the day of the test."""
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (moment.timestamp(), moment.timestamp()), follow_symlinks=False)
