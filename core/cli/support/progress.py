"""Progress of what takes a person's time, in one line of a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Final

import click

_SHOWN_AFTER: Final = 1.0  # seconds: most work ends sooner
_PAUSE: Final = 0.1  # seconds between two changes of the line

ShowProgress = Callable[[str, int, int], None]
"""Shows what is done, how much of it, and of how much; 0 for an unknown whole."""


@contextmanager
def show_progress() -> Iterator[ShowProgress]:
    """Show the progress of long work in a line of standard error, which disappears at the end; only in a terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda what, done, total: None
        return
    progress = _ProgressLine()
    try:
        yield progress.show
    finally:
        progress.remove()


class _ProgressLine:
    """One line of a terminal that is written again and again."""

    def __init__(self) -> None:
        self._text = ""
        self._due = monotonic() + _SHOWN_AFTER

    def show(self, what: str, done: int, total: int) -> None:
        now = monotonic()
        if now >= self._due:
            self._due = now + _PAUSE
            text = f"{what}: {done:,} of {total:,}" if total else f"{what}: {done:,}"
            click.echo(f"\r{text:{len(self._text)}}", nl=False, err=True)
            self._text = text

    def remove(self) -> None:
        if self._text:
            click.echo(f"\r{'':{len(self._text)}}\r", nl=False, err=True)
