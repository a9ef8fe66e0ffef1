"""The command palette: every action, pattern, loop, task and debug session, found by typing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.style import Style

from core.text import visible_line
from tui.actions import actions_of, key_name
from tui.present.memory_tree import session_key, task_key
from tui.screens.place import Place

if TYPE_CHECKING:
    from tui.app import DeckApp

MOST: Final = 20
"""Records of a kind that are offered at once."""


class DeckCommands(Provider):
    """Actions of the place in front, then records by id or words."""

    @property
    def _app(self) -> DeckApp:
        from tui.app import DeckApp

        assert isinstance(self.app, DeckApp)
        return self.app

    def _actions(self) -> list[tuple[str, str, str]]:
        screen = self.screen
        if not isinstance(screen, Place):
            return []
        return [
            (action.id, f"{action.label}: {action.tooltip}", key_name(self._app.shown_key(action.id)))
            for action in actions_of(screen.place)
            if action.group != "Move"
        ]

    async def discover(self) -> Hits:
        """What the palette offers before anything is typed."""
        for action, text, key in self._actions():
            yield DiscoveryHit(Content(f"{text}  ({key})"), partial(self._act, action), text=text)
        for name, (label, _theme) in self._app.themes.items():
            text = f"theme: {label}"
            yield DiscoveryHit(Content(text), partial(self._app.use_theme, name), text=text)

    async def search(self, query: str) -> Hits:
        """What fits the typed text."""
        matcher = self.matcher(query)
        for action, text, key in self._actions():
            if score := matcher.match(text):
                yield Hit(score, _lit(f"{text}  ({key})", query), partial(self._act, action), text=text)
        for name, (label, _theme) in self._app.themes.items():
            text = f"theme: {label}"
            if score := matcher.match(text):
                yield Hit(score, _lit(text, query), partial(self._app.use_theme, name), text=text)
        lowered = query.lower()
        snapshot = self._app.view.snapshot
        records = [
            *(("patterns", key, f"{key}  {p.title}") for key, p in snapshot.patterns.items()),
            *(("loops", key, f"{key}  {loop.task}") for key, loop in snapshot.loops.items()),
            *(("memory", task_key(key), f"{key}  {task.description}") for key, task in snapshot.tasks.items()),
            *(("memory", session_key(key), f"{key}  {s.file_path}") for key, s in snapshot.debug_sessions.items()),
        ]
        found = 0
        for place, key, text in records:
            if lowered in text.lower():
                shown = visible_line(text, 120)
                yield Hit(0.5, _lit(shown, query), partial(self._app.open_record, place, key), text=shown)
                found += 1
                if found >= MOST:
                    return

    async def _act(self, action: str) -> None:
        screen = self._app.screen
        if isinstance(screen, Place):
            await screen.action_act(action)


def _lit(text: str, query: str) -> Content:
    """The text with the first occurrence of the query underlined; never read as markup."""
    content = Content(text)
    at = text.lower().find(query.lower())
    return content.stylize(Style(underline=True, bold=True), at, at + len(query)) if at >= 0 else content
