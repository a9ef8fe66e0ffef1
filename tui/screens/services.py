"""Protocol of the app for its screens and dialogs, which must not import the app."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from textual.notifications import SeverityLevel

    from core.decisions.case import Progress
    from core.decisions.commands import Command
    from core.index.project_state import ProjectState
    from core.project.project import Project
    from core.records.team import Lease, TeamStatus
    from tui.engine import Engine
    from tui.kit.bars import Item, Notice
    from tui.kit.glyphs import Glyphs
    from tui.kit.key_queue import JumpGuard, KeyQueue
    from tui.kit.saved_views import FollowedLink
    from tui.kit.user_state import UserState


class Services(Protocol):
    """The part of the app that screens and dialogs use; `tui.app` and `tui.shell` describe the methods.

    `view` is the newest state of the project, `user_state` has settings of this user that are kept between runs.
    `progress` is (files read, files) during the first load, `last_visit` is the time of the previous dashboard session
    on this project, if known. `is_trusted` is whether agents may get something from the project. `team` is None as
    long as no team is known.
    """

    project: Project
    engine: Engine
    view: ProjectState
    user_state: UserState
    progress: tuple[int, int] | None
    last_visit: datetime | None
    jump_guard: JumpGuard
    key_queue: KeyQueue
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
    def preview_loop(self, loop_id: str) -> None: ...
    def preview_pattern(self, pattern_id: str) -> None: ...
    def hold_question(self, question: str) -> None: ...
    def lease_on(self, question: str) -> Lease | None: ...
    def edit_file(self, relative: str) -> None: ...
    def edit_text(self, text: str) -> str | None: ...
    def keys_of(self, action: str) -> str: ...
    def shown_key(self, action: str) -> str: ...
    def top_items(self, place: str) -> tuple[list[Item], list[Item]]: ...
