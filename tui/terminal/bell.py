"""Calling a person through the terminal when something needs a decision: by bell or by message, if they want that."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from core.base.text import plural
from core.project.notifications import Happening, What
from core.records.findings import Severity
from core.records.loops import LoopStatus

MODES: Final = {
    "off": "calls are off",
    "bell": "the terminal's bell calls when something needs a decision",
    "osc9": "messages of the terminal call (OSC 9: iTerm2, WezTerm, kitty, Ghostty, Windows Terminal)",
    "osc777": "messages of the terminal call (OSC 777: foot, urxvt, VTE, Ghostty)",
}
"""Ways of calling, and what is told when one is chosen."""
PAUSE_SECONDS: Final = 60.0
"""Seconds between two calls at least; what happens meanwhile is told in the next one."""

_MANY: Final = {"question in Review": "questions in Review"}


class Bell:
    """Collects what needs a decision and calls, not more often than once in a while.

    A call has no text from files in it: counts and our own words only.

    Args:
        mode: The way of calling in use, of `MODES`.
        write: Writes to the terminal.
        clock: Seconds that only ever grow.
        environment: Tells whether the terminal is tmux.
    """

    def __init__(
        self,
        mode: Callable[[], str],
        write: Callable[[str], None],
        clock: Callable[[], float],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._mode = mode
        self._write = write
        self._clock = clock
        self._environment = os.environ if environment is None else environment
        self._waiting: Counter[str] = Counter()
        self._called = float("-inf")

    def note(self, happened: Iterable[Happening]) -> None:
        """Take note of what happened, and call if anything of it needs a person."""
        if self._mode() == "off":
            self._waiting.clear()
            return
        self._waiting.update(kind for one in happened if (kind := _kind(one)))
        self.call_if_due()

    def call_if_due(self) -> None:
        """Call, if there is something to tell and the last call was long enough ago."""
        if self._waiting and self._clock() - self._called >= PAUSE_SECONDS:
            self.call(", ".join(plural(count, kind, _MANY.get(kind)) for kind, count in self._waiting.items()))
            self._waiting.clear()

    def call(self, words: str) -> None:
        """Call now, with our own words."""
        self._called = self._clock()
        text = {
            "bell": "\a",
            "osc9": f"\x1b]9;ralphdeck: {words}\x1b\\",
            "osc777": f"\x1b]777;notify;ralphdeck;{words}\x1b\\",
        }.get(self._mode(), "")
        if text.startswith("\x1b") and self._environment.get("TMUX"):
            doubled = text.replace("\x1b", "\x1b\x1b")
            text = f"\x1bPtmux;{doubled}\x1b\\"
        if text:
            self._write(text)


def _kind(one: Happening) -> str:
    """What a person is called for: what broke off, an escalation, or a question while which something goes wrong."""
    if one.status is LoopStatus.CRASHED:
        return "crashed loop"
    if one.what is What.ESCALATED:
        return "escalation"
    return "question in Review" if one.what is What.ASKED and one.severity is Severity.WARNING else ""
