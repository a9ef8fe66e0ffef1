"""The terminal is restored and the exit code gives the reason, however the dashboard ends."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e.runner import SECRET
from tests.e2e.stream import offences
from tests.e2e.terminal import TIMEOUT_SECONDS, Terminal, dashboard, environment, python

LEAVING = ("\x1b[?1049l", "\x1b[?25h", "\x1b[?1000l", "\x1b[?1003l", "\x1b[?1006l", "\x1b[?2004l", "\x1b[?1004l")
"""Sequences that restore a terminal: main screen, cursor, mouse off, plain pasting, no focus reports."""
ENTERING = tuple(code[:-1] + ("l" if code.endswith("h") else "h") for code in LEAVING)


def running(terminal: Terminal) -> None:
    """Wait until the dashboard shows the sample."""
    terminal.sees("Loops", "running", "live")


def assert_given_back(terminal: Terminal) -> None:
    raw = bytes(terminal.raw).decode()
    for on, off in zip(ENTERING, LEAVING, strict=True):
        assert raw.rfind(off) > raw.rfind(on) >= 0, f"{off!r} does not follow {on!r}"
    assert terminal.is_cooked
    assert offences(bytes(terminal.raw)) == []


@pytest.mark.parametrize(
    ("number", "code", "is_running"),
    [(signal.SIGTERM, 143, False), (signal.SIGTERM, 143, True), (signal.SIGINT, 130, True)],
)
def test_a_signal_ends_the_dashboard(
    sample: Path, home: Path, number: signal.Signals, code: int, is_running: bool
) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        if is_running:
            running(terminal)
        else:
            terminal.until(lambda: b"\x1b[?1049h" in terminal.raw, "the alternate screen")
        os.kill(terminal.pid, number)
        assert terminal.end() == code
        assert_given_back(terminal)


def test_ctrl_c_ends_the_dashboard_in_a_field(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        running(terminal)
        terminal.press(*"/abc", "ctrl+c")
        assert terminal.end() == 0
        assert_given_back(terminal)


def test_a_closed_terminal_without_signal_ends_the_dashboard(sample: Path, home: Path) -> None:
    main, side = pty.openpty()
    with subprocess.Popen(
        dashboard(sample), stdin=side, stdout=side, stderr=side, start_new_session=True, env=environment(home)
    ) as process:
        os.close(side)
        while b"Loops" not in os.read(main, 65536):
            pass
        os.close(main)
        try:
            assert process.wait(TIMEOUT_SECONDS) == 129
        finally:
            process.kill()


def test_a_closed_terminal_ends_the_dashboard(sample: Path, home: Path) -> None:
    terminal = Terminal(dashboard(sample), environment(home))
    running(terminal)
    os.close(terminal.fd)
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        pid, status = os.waitpid(terminal.pid, os.WNOHANG)
        if pid:
            assert os.waitstatus_to_exitcode(status) == 129
            return
        time.sleep(0.05)
    os.kill(terminal.pid, signal.SIGKILL)
    os.waitpid(terminal.pid, 0)
    pytest.fail("runs on without a terminal")


def test_stop_and_continue_signals_redraw_the_screen(sample: Path, home: Path) -> None:
    with Terminal(dashboard(sample), environment(home)) as terminal:
        running(terminal)
        for _ in range(3):
            os.kill(terminal.pid, signal.SIGCONT)
        terminal.press("5")
        terminal.sees("where")
        os.kill(terminal.pid, signal.SIGTSTP)
        terminal.stopped()
        assert_given_back(terminal)
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.press("3")
        terminal.sees("score")
        terminal.press("q")
        assert terminal.end() == 0
        assert_given_back(terminal)


@pytest.mark.parametrize("where", ["rich", "drawing", "start", "worker"])
def test_an_internal_error_ends_the_dashboard_with_a_message(sample: Path, home: Path, where: str) -> None:
    with Terminal(python("-m", "tests.e2e.runner", where, str(sample)), environment(home)) as terminal:
        if where in {"rich", "worker"}:
            running(terminal)
            terminal.press("T")
        elif where == "drawing":
            running(terminal)
            terminal.press("3")
        assert terminal.end() == 1
        raw = bytes(terminal.raw).decode()
        shown = raw[raw.rfind("\x1b[?25h") :] if "\x1b[?25h" in raw else raw
        assert "broken" in shown
        assert SECRET not in raw.replace("\r\n", ""), "local variables are shown"
        assert "RDXtitle\x07" not in raw
        assert "\x1b[31mbroken" not in raw
        if where == "start":
            assert terminal.is_cooked
        else:
            assert_given_back(terminal)
        log = (home / "state/ralphdeck/ralphdeck.log").read_bytes().decode()
        assert "broken" in log
        assert "\x1b" not in log


def test_a_failed_job_is_reported_and_the_dashboard_continues(sample: Path, home: Path) -> None:
    with Terminal(python("-m", "tests.e2e.runner", "engine", str(sample)), environment(home)) as terminal:
        terminal.sees("Internal error", "broken")
        terminal.press("q")
        assert terminal.end() == 0
        assert_given_back(terminal)
        assert "Traceback" in (home / "state/ralphdeck/ralphdeck.log").read_text()
