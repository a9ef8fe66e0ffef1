from __future__ import annotations

import pytest

from core.project.notifications import Notification, NotificationKind
from core.records.findings import Severity
from core.records.loops import LoopStatus
from tui.kit.terminal import PAUSE_SECONDS, Bell

HOSTILE = "\x1b]52;c;AAAA\x07"
CRASH = Notification(
    what=NotificationKind.ENDED, subject=HOSTILE, text=HOSTILE, severity=Severity.ERROR, status=LoopStatus.CRASHED
)
QUESTION = Notification(what=NotificationKind.ASKED, subject="x", text=HOSTILE, severity=Severity.WARNING)
TIDYING = Notification(what=NotificationKind.ASKED, subject="x", text="offer", severity=Severity.INFO)
STARTED = Notification(what=NotificationKind.STARTED, subject="x", text="started", severity=Severity.INFO)


class Terminal:
    """Collects what is written; its clock moves only when set."""

    def __init__(self, mode: str, **environment: str) -> None:
        self.mode = mode
        self.seconds = 0.0
        self.written: list[str] = []
        self.caller = Bell(lambda: self.mode, self.written.append, lambda: self.seconds, environment)


@pytest.mark.parametrize(
    ("mode", "written"),
    [
        ("off", []),
        ("bell", ["\a"]),
        ("osc9", ["\x1b]9;ralphdeck: 1 crashed loop, 2 questions in Review\x1b\\"]),
        ("osc777", ["\x1b]777;notify;ralphdeck;1 crashed loop, 2 questions in Review\x1b\\"]),
        ("nonsense", []),
    ],
)
def test_a_desktop_notification_contains_no_text_from_files(mode: str, written: list[str]) -> None:
    terminal = Terminal(mode)
    terminal.caller.note([CRASH, QUESTION, STARTED, QUESTION, TIDYING])
    assert terminal.written == written


def test_a_notification_is_sent_only_once() -> None:
    terminal = Terminal("osc9")
    terminal.caller.note([STARTED, TIDYING])
    assert terminal.written == []
    for _ in range(50):
        terminal.caller.note([QUESTION])
    assert len(terminal.written) == 1
    terminal.seconds = PAUSE_SECONDS
    terminal.caller.call_if_due()
    terminal.caller.call_if_due()
    assert len(terminal.written) == 2 and "49 questions" in terminal.written[1]


def test_events_while_notifications_are_off_are_never_reported() -> None:
    terminal = Terminal("off")
    terminal.caller.note([CRASH])
    terminal.mode = "bell"
    terminal.caller.call_if_due()
    assert terminal.written == []


def test_tmux_forwards_a_notification_to_the_outer_terminal() -> None:
    terminal = Terminal("osc9", TMUX="/tmp/tmux,1,0")
    terminal.caller.note([CRASH])
    assert terminal.written == ["\x1bPtmux;\x1b\x1b]9;ralphdeck: 1 crashed loop\x1b\x1b\\\x1b\\"]
