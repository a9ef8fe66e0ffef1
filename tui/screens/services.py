"""Protocol of the app for its screens, which must not import the app."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from textual.app import App
    from textual.notifications import SeverityLevel
    from textual.theme import Theme

    from core.decisions.case import Progress
    from core.decisions.commands import Command
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.team_status import Lease, TeamStatus
    from tui.engine import Engine
    from tui.kit.back_stack import FollowedLink
    from tui.kit.bars import Item, Notice
    from tui.kit.glyphs import Glyphs
    from tui.kit.key_queue import JumpGuard, KeyQueue
    from tui.kit.saved_views import SavedView
    from tui.kit.user_state import UserState
    from tui.screens.palette_index import PaletteIndex


class Services(Protocol):
    """The part of the app that screens, dialogs and the palette use.

    `view` is the newest state of the project, `user_state` has settings of this user that are kept between runs,
    `themes` has label and theme by name, `jumps` is the last built index of the palette. `progress` is (files read,
    files) during the first load, `last_visit` is the time of the previous dashboard session on this project, if known.
    `is_trusted` is whether agents may get something from the project. `team` is None as long as no team is known. The
    methods are described in `tui.app` and `tui.shell`.
    """

    project: Project
    engine: Engine
    view: ProjectState
    user_state: UserState
    themes: Mapping[str, tuple[str, Theme]]
    progress: tuple[int, int] | None
    last_visit: datetime | None
    jump_guard: JumpGuard
    key_queue: KeyQueue
    jumps: PaletteIndex | None
    is_trusted: bool
    team: TeamStatus | None
    notices: tuple[Notice, ...]

    @property
    def glyphs(self) -> Glyphs: ...
    @property
    def row_lines(self) -> int: ...
    @property
    def is_web(self) -> bool: ...
    @property
    def link(self) -> FollowedLink | None: ...
    @property
    def may_undo(self) -> bool: ...
    @property
    def is_counting(self) -> bool: ...
    @property
    def is_deciding(self) -> bool: ...
    def now(self) -> datetime: ...
    def say(self, text: str, *, severity: SeverityLevel = "information") -> None: ...
    def copy(self, text: str) -> None: ...
    def use_theme(self, name: str) -> None: ...
    def decide(
        self,
        command: Command,
        seen: ProjectState | None = None,
        *,
        progress: Progress | None = None,
        done: Callable[[], None] | None = None,
    ) -> None: ...
    def undo_hint(self) -> str: ...
    def go_back(self) -> None: ...
    def open_record(self, place: str, key: str, *, tab: str = "") -> None: ...
    def open_filtered(self, place: str, text: str, key: str) -> None: ...
    def open_place(self, place: str, text: str = "") -> None: ...
    def open_view(self, view: SavedView) -> None: ...
    def preview_loop(self, loop_id: str) -> None: ...
    def preview_pattern(self, pattern_id: str) -> None: ...
    def hold_question(self, question: str) -> None: ...
    def lease_on(self, question: str) -> Lease | None: ...
    def edit_file(self, relative: str) -> None: ...
    def edit_text(self, text: str) -> str | None: ...
    def keys_of(self, action: str) -> str: ...
    def shown_key(self, action: str) -> str: ...
    def top_items(self, place: str) -> tuple[list[Item], list[Item]]: ...


def services_of(app: App[Any]) -> Services:
    """Return the app, typed as `Services`."""
    return cast("Services", app)
