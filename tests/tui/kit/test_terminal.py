"""Notifications and the clipboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from rich.cells import cell_len
from textual.content import Content

from core.project.notifications import Notification, NotificationKind
from core.records.findings import Severity
from core.records.loops import LoopStatus
from core.show.pages.markdown import record_markdown
from tests.tui.user import open_dashboard
from tui.kit.drawing import TextPane, fit
from tui.kit.terminal import MOST_BYTES, PAUSE_SECONDS, Bell, copyable, load_into_tmux, terminal_way

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


def test_a_desktop_notification_contains_no_text_from_files() -> None:
    for mode, written in {
        "off": [],
        "bell": ["\a"],
        "osc9": ["\x1b]9;ralphdeck: 1 crashed loop, 2 questions in Review\x1b\\"],
        "osc777": ["\x1b]777;notify;ralphdeck;1 crashed loop, 2 questions in Review\x1b\\"],
        "nonsense": [],
    }.items():
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


def test_copied_text_contains_no_control_codes() -> None:
    assert copyable("a\x1b]52;c;x\x07b")[0].isprintable()
    assert copyable("é" * 10) == ("é" * 10, False)
    text, cut = copyable("漢" * MOST_BYTES)
    assert cut and len(text.encode()) == MOST_BYTES - MOST_BYTES % 3


def test_the_toast_names_the_route_of_a_copy() -> None:
    assert "OSC 52" in terminal_way({})
    assert "over ssh" in terminal_way({"SSH_TTY": "/dev/pts/1"})
    assert "set-clipboard on" in terminal_way({"TMUX": "x"})


def fake_tmux(folder: Path, clipboard: str) -> None:
    script = folder / "tmux"
    script.write_text(
        f'#!/bin/sh\ncase "$1" in load-buffer) cat > "{folder}/got" ;; show-options) echo {clipboard} ;; esac\n'
    )
    script.chmod(0o755)


async def test_tmux_receives_the_copied_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    fake_tmux(tmp_path, "external")
    assert "clipboard of the terminal" in (await load_into_tmux("a `b` $c") or "")
    assert (tmp_path / "got").read_text() == "a `b` $c"
    fake_tmux(tmp_path, "off")
    assert "set-clipboard on" in (await load_into_tmux("x") or "")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert await load_into_tmux("x") is None


def test_markdown_of_a_record_escapes_its_text() -> None:
    text = record_markdown("pat-*x*\n# fake", [("rate", "80 %"), ("flags", "")], [("Why", "a ```` b\n## no heading")])
    assert text.startswith("## pat-\\*x\\*")
    assert "\n# fake" not in text and "- rate: 80 %" in text and "flags" not in text
    assert "`````text\na ```` b\n## no heading\n`````" in text


async def test_copying_selections_rows_and_details(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        await user.press("Y")
        assert "Migrate payment webhooks to idempotency keys" in user.app.clipboard and "running" in user.app.clipboard
        await user.go("patterns")
        key = user.table.cursor_key or ""
        await user.press("y")
        assert user.app.clipboard == key and "OSC 52" in user.toasts()[-1]
        await user.press("Y")
        copied = user.app.clipboard
        assert copied.startswith(f"## {key}\n") and "### Overview" in copied
        assert "- state: proven\n" in copied, "no marks"

        row = user.row(key)
        await user.pilot.mouse_down(user.table, offset=(2, 1))
        await user.pilot.hover(user.table, offset=(12, 1))
        await user.pilot.mouse_up(user.table, offset=(12, 1))
        assert user.app.screen.get_selected_text() == row[2:13].rstrip()
        await user.press("ctrl+c")
        assert user.app.clipboard == row[2:13].rstrip() and user.app.is_running
        assert user.table.cursor_key == key, "the end of a drag is no click"

        pane = user.place.query_one(TextPane)
        await user.pilot.mouse_down(pane, offset=(1, 0))
        await user.pilot.hover(pane, offset=(5, 1))
        await user.pilot.mouse_up(pane, offset=(5, 1))
        first = pane.plain.splitlines()
        assert (user.app.screen.get_selected_text() or "").splitlines()[0] == first[0]
        await user.press("y")
        assert user.app.clipboard.splitlines()[0] == first[0]
        assert not user.app.screen.selections


WIDE = (
    "漢字かな交じり",
    "e\u0301a\u0308\u0323" * 9,
    "👩‍👩‍👧‍👦👨🏽‍💻",
    "🇩🇪🇫🇷🇯🇵",
    "❤️1️⃣☠️",
    "각각 한국어",
    "ＡＢＣ",
    "שלום",
    "\u200b\u202e",
)


async def test_every_line_is_as_wide_as_the_screen(tmp_path: Path, home: Path) -> None:
    project = tmp_path / "wide"
    folder = project / ".aiwg/ralph/shared/patterns"
    folder.mkdir(parents=True)
    records = ",".join(
        f'{{"pattern_id":"pat-error-{text}-{n}","error_pattern":"{text * 9}","fix_description":"{text * 30}",'
        f'"usage_count":{n},"success_rate":0.5,"tags":["{text}"]}}'
        for n, text in enumerate(WIDE)
    )
    (folder / "error-patterns.json").write_text(f'{{"patterns":[{records}]}}')
    async with open_dashboard(project, home, size=(83, 24), density="comfortable") as user:
        for keys in (
            ("2",),
            ("G", "enter"),
            ("escape", "question_mark"),
            ("escape", "d"),
            ("escape", "V"),
            ("escape", "3"),
        ):
            await user.press(*keys)
            await user.settled()
            for line in user.text().splitlines():
                assert cell_len(line) == 83, line


def test_an_emoji_is_never_cut_in_half() -> None:
    for text in WIDE:
        for width in range(1, 12):
            assert fit(Content(text), width).cell_length == width


def test_a_line_that_is_cut_after_an_ellipsis_ends_with_one() -> None:
    for width in (13, 14):
        assert fit(Content("Timeout of … ms for a test"), width).plain.rstrip() == "Timeout of …"
