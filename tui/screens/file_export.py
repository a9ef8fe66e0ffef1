"""Exports to a file that the user names. Overwriting needs confirmation."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Final

from textual.content import Content

from core.base.errors import BadInput, RalphdeckError
from core.base.text import visible_line
from core.files.atomic_write import export_file, file_exists, write_file
from tui.kit.actions import SCREENS
from tui.screens.dialogs import AskLine, Confirm

if TYPE_CHECKING:
    from tui.screens.base_screen import BaseScreen

_FONT_FACES: Final = re.compile(r"@font-face\s*\{[^}]*\}\s*")  # font faces that a browser would load from another host


def export(screen: BaseScreen, what: str, name: str, suffixes: Collection[str], make: Callable[[str], bytes]) -> None:
    """Ask for a file name (default `name`), then write the result of `make` in a worker.

    `make` gets the suffix, one of `suffixes`. `what` names the exported content in the dialog.
    """

    def named(answer: str) -> None:
        if not answer:
            return
        try:
            file = export_file(answer, screen.services.project.project, suffixes)
        except BadInput as error:
            screen.services.say(str(error), severity="warning")
            return
        if file_exists(file):
            title, detail = f"Overwrite {visible_line(file.name, 80)}?", visible_line(str(file), 300)
            dialog = Confirm(Content(title), Content(detail), verb="overwrite")
            screen.ask_user(dialog, lambda yes: _write(screen, file, make) if yes else None)
        else:
            _write(screen, file, make)

    formats = ", ".join(suffixes)
    detail = Content(f"File name, or a path; relative to the current folder. Formats: {formats}.")
    screen.ask_user(AskLine(Content(f"Export {what}"), detail, verb="export", required=False, value=name), named)


def make_portable(svg: str) -> str:
    """Remove fonts of other hosts from a screenshot, and keep leading spaces in every viewer."""
    return _FONT_FACES.sub("", svg).replace("<svg ", '<svg xml:space="preserve" ', 1)


def export_picture(screen: BaseScreen) -> None:
    """Export the current screen as SVG."""
    place = SCREENS[screen.place]
    picture = make_portable(screen.app.export_screenshot(title=visible_line(f"ralphdeck: {place}", 80)))
    data = picture.encode("utf-8", "replace")
    name = f"ralphdeck-{place.lower().replace(' ', '-')}-{screen.services.now():%Y-%m-%d}.svg"
    export(screen, f"a picture of {place}", name, (".svg",), lambda _suffix: data)


def _write(screen: BaseScreen, file: Path, make: Callable[[str], bytes]) -> None:
    app, say = screen.app, screen.services.say

    def work() -> None:
        try:
            write_file(file, make(file.suffix.lower()))
        except RalphdeckError as error:
            app.call_from_thread(say, str(error), severity="error")
        else:
            app.call_from_thread(say, f"Wrote {file}")

    app.run_worker(work, thread=True, group="export")
