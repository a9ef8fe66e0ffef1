"""Part of the app that shows progress, watch status and team in the top bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import on
from textual.content import Content

from tui.engine import Engine
from tui.global_actions import GlobalActionApp
from tui.present import frame
from tui.present.team import top_text
from tui.present.trust import trust_mark
from tui.widgets.bars import Item, TopBar
from tui.widgets.record_table import RecordTable

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.snapshot import Snapshot
    from core.storage.watcher import WatchState
    from tui.state.user_state import UserState


class TopBarApp(GlobalActionApp, inherit_bindings=False):
    """An app with a top bar; `paths` are those of the project that it is going to open."""

    def __init__(
        self, user_state: UserState, theme: str | None, clock: Callable[[], float], paths: ProjectPaths
    ) -> None:
        super().__init__(user_state, theme, clock)
        self._paths = paths
        self._is_shown = False  # whether there is a `view`
        self.progress: tuple[int, int] | None = (0, 0)
        self.bytes_read: tuple[int, int] | None = None
        self._counted: tuple[Snapshot | None, frame.Counts] = None, frame.Counts(0, 0, 0)
        self.watch_state: WatchState | None = None
        self.is_trusted = True  # whether agents may get something from the project

    @on(Engine.Progress)
    def _progressed(self, message: Engine.Progress) -> None:
        self.progress = message.done, message.total
        if place := self._front():
            for table in place.query(RecordTable):
                if not table.keys:
                    table.redraw()
            place.refresh_top()

    @on(Engine.Reading)
    def _reading(self, message: Engine.Reading) -> None:
        before, self.bytes_read = self.bytes_read, (message.done, message.total) if message.total else None
        if before != self.bytes_read:
            self._refresh_frame()

    @on(Engine.Watching)
    def _watching(self, message: Engine.Watching) -> None:
        before, self.watch_state = self.watch_state, message.state
        if message.state.mode == "polling" and (before is None or before.mode != "polling"):
            self.say(f"Watching by polling: {message.state.reason}", severity="warning")
        self._refresh_frame()

    @on(Engine.Searching)
    def _refresh_frame(self) -> None:
        if place := self._front():
            place.refresh_frame()

    def top_items(self, place: str) -> tuple[list[Item], list[Item]]:
        name = self._paths.project.name
        view = self.view if self._is_shown else None
        if view is not None and view.snapshot is not self._counted[0]:
            self._counted = view.snapshot, frame.count_status(view.snapshot)
        left, right = list[Item](), list[Item]()
        for fit in frame.FITS:
            places = frame.places(
                name,
                place,
                view.pending_count if view is not None else 0,
                fit,
                is_counting=self._is_shown and self.is_counting,
                under=self.current_mode,
            )
            pulse = frame.watch_status(
                self._counted[1],
                self.progress,
                self.watch_state,
                self.glyphs,
                detail=fit.detail,
                key=self.shown_key("findings"),
                is_readonly=self.is_open and self.project.is_readonly,
                bytes_read=self.bytes_read,
                as_of=view.snapshot.as_of if view is not None else None,
            )
            left = [Item(content, value) for content, value in frame.fitting_items(places, self.size.width)]
            together = top_text(self.team, self.project.now(), fit.team) if self.team is not None else Content("")
            if together and pulse and fit.detail < frame.Detail.BRIEF:
                together = together.append("  ")
            doubt = (
                trust_mark(view, self.shown_key("trust"), is_trusted=self.is_trusted)
                if self.is_open and view is not None
                else Content("")
            )
            right = [Item(doubt, "trust")] * bool(doubt)
            right += [Item(together, "help")] * bool(together) + [Item(pulse, "findings")] * bool(pulse)
            if TopBar.cells(left + right) <= self.size.width:
                break
        return left, right
