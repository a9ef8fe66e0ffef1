"""Copying: through tmux where the dashboard runs in one, else through the terminal (OSC 52), also over ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from textual.app import App
from textual.widgets import Input, TextArea

from core.base.text import plural, visible

MOST_BYTES: Final = 74_994
"""UTF-8 bytes that every terminal with OSC 52 takes at once: 100,000 bytes with base64 and the frame around it."""
TMUX_SECONDS: Final = 2.0
"""How long tmux may take for an answer."""


def copyable(text: str) -> tuple[str, bool]:
    """The text as it may be copied, and whether it is only the beginning of it.

    What acts in a terminal is shown as a mark instead: a copied text is soon pasted into a shell.
    """
    shown = visible(text)
    data = shown.encode()
    if len(data) <= MOST_BYTES:
        return shown, False
    return data[:MOST_BYTES].decode(errors="ignore"), True


async def load_into_tmux(text: str) -> str | None:
    """Give a text to tmux, which passes it on to its terminal; what to tell of it, or None if tmux can't.

    `load-buffer -w` gets through where `set-clipboard` is `external`, tmux's default, under which tmux ignores what
    programs in it write with OSC 52.
    """
    if await _tmux("load-buffer", "-w", "-", given=text) is None:
        return None
    setting = await _tmux("show-options", "-sv", "set-clipboard")
    if setting is not None and setting.strip() == "off":
        return "to tmux alone: prefix ] pastes it; `set -s set-clipboard on` lets it reach the clipboard"
    return "to tmux (prefix ] pastes it) and to the clipboard of the terminal around it"


async def _tmux(*arguments: str, given: str = "") -> str | None:
    """What a tmux command prints; None if there is no tmux, or it refuses or takes too long."""
    process = None
    try:
        process = await asyncio.create_subprocess_exec(
            "tmux",
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        printed, _ = await asyncio.wait_for(process.communicate(given.encode()), TMUX_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # type: ignore[union-attr]  # it was started, else nothing could take too long
        return None
    except OSError:
        return None
    return printed.decode(errors="replace") if process.returncode == 0 else None


def told(text: str, way: str, *, cut: bool) -> str:
    """The toast on a copy: how much, which way, and what is missing."""
    what = f"copied {plural(len(text), 'character')}"
    if cut:
        what = f"copied only the first {len(text):,} characters, all that terminals take,"
    return f"{what} {way}"


def terminal_way(environment: Mapping[str, str] | None = None) -> str:
    """How a copy goes through the terminal."""
    environment = os.environ if environment is None else environment
    if environment.get("TMUX"):
        return "through the terminal; tmux lets it pass with `set -s set-clipboard on`"
    if environment.get("SSH_TTY") or environment.get("SSH_CONNECTION"):
        return "over ssh through the terminal (OSC 52); if nothing arrives, allow it in the terminal's settings"
    return "through the terminal (OSC 52)"


class Copier:
    """Copies for an app, and says how.

    Args:
        app: Whose terminal it is.
        say: Shows a line to the person.
    """

    def __init__(self, app: App[Any], say: Callable[[str], None]) -> None:
        self._app = app
        self._say = say

    def copy(self, text: str) -> None:
        """Copy a text, which may be untrusted."""
        copied, cut = copyable(text)
        if os.environ.get("TMUX"):
            self._app.run_worker(self._copy_in_tmux(copied, cut=cut), group="copy", exclusive=True)
        else:
            self._through_the_terminal(copied, cut=cut)

    async def _copy_in_tmux(self, text: str, *, cut: bool) -> None:
        way = await load_into_tmux(text)
        if way is None:
            self._through_the_terminal(text, cut=cut)
        else:
            self._say(told(text, way, cut=cut))

    def _through_the_terminal(self, text: str, *, cut: bool) -> None:
        self._app.copy_to_clipboard(text)
        self._say(told(text, terminal_way(), cut=cut))

    def selected(self) -> str:
        """What is selected, in a field or with the mouse; "" if nothing is."""
        focused = self._app.focused
        if isinstance(focused, Input | TextArea) and focused.selected_text:
            return focused.selected_text
        return self._app.screen.get_selected_text() or ""
