"""Notifications by terminal bell or desktop message."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from core.base.text import plural
from core.records.findings import Severity
from core.records.loops import LoopStatus

if TYPE_CHECKING:
    from core.project.notifications import Notification

MODES: Final = {
    "off": "Notifications: off",
    "bell": "Notifications: terminal bell",
    "osc9": "Notifications: desktop (OSC 9: iTerm2, WezTerm, kitty, Ghostty, Windows Terminal)",
    "osc777": "Notifications: desktop (OSC 777: foot, urxvt, VTE, Ghostty)",
}
"""Kinds of notifications, each with the toast shown when it is chosen."""
PAUSE_SECONDS: Final = 60.0  # minimum seconds between two notifications; events in between are reported in the next one

_MANY: Final = {"question in Review": "questions in Review"}


class Bell:
    """Collects events that need a decision, and notifies at most once per interval.

    A notification contains only counts and fixed words, no text from files. `mode` returns a key of `MODES`;
    `write` writes to the terminal; `clock` returns monotonic seconds; `environment` is used to detect tmux.
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

    def note(self, happened: Iterable[Notification]) -> None:
        """Collect the events that need the user, and notify if enough time has passed."""
        if self._mode() == "off":
            self._waiting.clear()
            return
        self._waiting.update(kind for one in happened if (kind := _kind(one)))
        self.call_if_due()

    def call_if_due(self) -> None:
        """Notify if there are events and the last notification is long enough ago."""
        if self._waiting and self._clock() - self._called >= PAUSE_SECONDS:
            self.call(", ".join(plural(count, kind, _MANY.get(kind)) for kind, count in self._waiting.items()))
            self._waiting.clear()

    def call(self, words: str) -> None:
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


def _kind(one: Notification) -> str:
    """Return the name of an event that needs the user, or "" for other events."""
    from core.project.notifications import NotificationKind

    if one.status is LoopStatus.CRASHED:
        return "crashed loop"
    if one.what is NotificationKind.ESCALATED:
        return "escalation"
    if one.what is NotificationKind.REFUSED:
        return "refused decision"
    return "question in Review" if one.what is NotificationKind.ASKED and one.severity is Severity.WARNING else ""
