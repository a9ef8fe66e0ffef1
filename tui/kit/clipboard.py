"""Copies to the clipboard through tmux or the terminal (OSC 52), also over ssh."""

from __future__ import annotations

import asyncio
import contextlib
import os
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from textual.widgets import Input, TextArea

from core.base.text import plural, visible

if TYPE_CHECKING:
    from textual.app import App

MOST_BYTES: Final = 74_994  # UTF-8 bytes that every terminal with OSC 52 accepts: 100,000 bytes with base64 and frame
TMUX_SECONDS: Final = 2.0  # timeout of a tmux command


def copyable(text: str) -> tuple[str, bool]:
    """Return the text that can be copied, and whether it was cut.

    Control characters are made visible: a copied text may be pasted into a shell.
    """
    shown = visible(text)
    data = shown.encode()
    if len(data) <= MOST_BYTES:
        return shown, False
    return data[:MOST_BYTES].decode(errors="ignore"), True


async def load_into_tmux(text: str) -> str | None:
    """Load a text into tmux and its terminal. Return the toast, or None on failure.

    `load-buffer -w` works if `set-clipboard` is `external`, tmux's default, which blocks OSC 52 of programs in tmux.
    """
    if await _tmux("load-buffer", "-w", "-", given=text) is None:
        return None
    setting = await _tmux("show-options", "-sv", "set-clipboard")
    if setting is not None and setting.strip() == "off":
        return "to tmux alone: prefix ] pastes it; `set -s set-clipboard on` lets it reach the clipboard"
    return "to tmux (prefix ] pastes it) and to the clipboard of the terminal around it"


async def _tmux(*arguments: str, given: str = "") -> str | None:
    """Return the output of a tmux command; None without tmux, on an error or timeout."""
    process = None
    try:
        process = await asyncio.create_subprocess_exec("tmux", *arguments, stdin=PIPE, stdout=PIPE, stderr=DEVNULL)
        printed, _ = await asyncio.wait_for(process.communicate(given.encode()), TMUX_SECONDS)
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()  # type: ignore[union-attr]  # it was started, else nothing could take too long
        return None
    except OSError:
        return None
    return printed.decode(errors="replace") if process.returncode == 0 else None


def copy_message(text: str, way: str, *, cut: bool) -> str:
    """Return the toast after a copy: its size, its destination and whether it was cut."""
    what = f"Copied {plural(len(text), 'character')}"
    if cut:
        what = f"Copied only the first {len(text):,} characters, the limit of terminals,"
    return f"{what} {way}"


def terminal_way(environment: Mapping[str, str] | None = None) -> str:
    """Describe how a copy through the terminal reaches the clipboard, for the toast."""
    environment = os.environ if environment is None else environment
    if environment.get("TMUX"):
        return "through the terminal; needs tmux option `set -s set-clipboard on`"
    if environment.get("SSH_TTY") or environment.get("SSH_CONNECTION"):
        return "over ssh through the terminal (OSC 52); if nothing arrives, allow it in the terminal's settings"
    return "through the terminal (OSC 52)"


class Copier:
    """Copies texts for an app, and reports the result with `say`."""

    def __init__(self, app: App[Any], say: Callable[[str], None]) -> None:
        self._app = app
        self._say = say

    def copy(self, text: str) -> None:
        """Copy a text. It may be untrusted."""
        copied, cut = copyable(text)
        if os.environ.get("TMUX"):
            self._app.run_worker(self._copy_in_tmux(copied, cut=cut), group="copy", exclusive=True)
        else:
            self._report(copied, None, cut=cut)

    async def _copy_in_tmux(self, text: str, *, cut: bool) -> None:
        self._report(text, await load_into_tmux(text), cut=cut)

    def _report(self, text: str, way: str | None, *, cut: bool) -> None:
        """Report a copy through tmux, or copy through the terminal if tmux failed."""
        if way is None:
            self._app.copy_to_clipboard(text)
        self._say(copy_message(text, way or terminal_way(), cut=cut))

    def selected(self) -> str:
        """Return the text selected in a field or with the mouse, or ""."""
        focused = self._app.focused
        if isinstance(focused, Input | TextArea) and focused.selected_text:
            return focused.selected_text
        return self._app.screen.get_selected_text() or ""
