"""A user's way through the dashboard in a real terminal multiplexer."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from tests.e2e import desk
from tests.e2e.desk import AFTER_JUMP, add_questions, at_question, decide
from tests.e2e.terminal import ROOT, dashboard, environment, python
from tests.e2e.tmux import PROMPT, Tmux

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")

QUICK_DECISIONS = 30
PATTERN = "pat-error-null-check-015"
SEEN_WITHIN = 3.0
"""Seconds until another dashboard shows a decision; the budget is one second on an idle machine."""
SLOWER = 10.0
"""Factor by which a busy machine may be slower."""


def active_rows(text: str) -> list[str]:
    """Rows of active loops; their clocks and bars change."""
    return [line for line in text.splitlines() if "● running" in line]


def next_question(tmux: Tmux) -> None:
    """Go to the next question in Review."""
    asked = at_question(tmux.text())
    tmux.keys("n")
    tmux.until(lambda: at_question(tmux.text()) not in ("", asked), "the next question")


def leave(tmux: Tmux, window: str) -> None:
    """Quit, and wait for the shell's screen."""
    tmux.keys("q", window=window)
    tmux.until(lambda: tmux.flag("alternate_on", window) == "0", "the end", window)


def test_the_demo_can_be_used_and_quit(home: Path) -> None:
    with Tmux(home, environment(home), (80, 24)) as tmux:
        tmux.start(python("-m", "tui", "demo"))
        tmux.sees("Needs you", "⟳")
        tmux.keys("4")
        tmux.sees("● running")
        before = active_rows(tmux.text())
        tmux.until(lambda: active_rows(tmux.text()) != before, "a running loop to go on")

        tmux.keys("3")
        tmux.sees("40 by score", "● prov")
        tmux.keys("/", f"id:{PATTERN}")
        tmux.sees("1 of 40", "◐ estab")
        tmux.keys("Enter")
        tmux.until(lambda: "p promote" in tmux.text(), "the keys of the list")
        time.sleep(AFTER_JUMP)
        tmux.keys("p")
        tmux.sees(f"promoted {PATTERN}", "● prov")
        tmux.keys("u")
        tmux.sees("Undone: promote", "◐ estab")

        tmux.keys("2")
        tmux.sees("1 of ")
        while "Warn agents of it" not in tmux.text():
            next_question(tmux)
        time.sleep(AFTER_JUMP)
        tmux.keys("a")
        tmux.sees("Review·", "undo accept")
        tmux.keys("L")
        tmux.sees("accept inversion", "undo")

        tmux.keys("6")
        tmux.sees("type task")
        tmux.keys("/", "Fix the TypeError in the order client", "Enter")
        tmux.sees("## Cross-Loop Learning Context", "tokens", "word match")

        tmux.keys("q")
        tmux.until(lambda: tmux.text().rstrip().endswith(PROMPT.strip()), "the prompt")
        flags = {name: tmux.flag(name) for name in ("alternate_on", "mouse_any_flag", "cursor_flag")}
        assert flags == {"alternate_on": "0", "mouse_any_flag": "0", "cursor_flag": "1"}
        tmux.keys("echo code $?", "Enter")
        tmux.sees("code 0")


def test_another_dashboard_shows_a_decision_within_seconds(sample: Path, home: Path) -> None:
    with Tmux(home, environment(home), (100, 30)) as tmux:
        tmux.window("second")
        for window in ("first", "second"):
            tmux.start(dashboard(sample), window)
        for window in ("first", "second"):
            tmux.sees("Needs you", "⟳", window=window)
            tmux.keys("3", window=window)
            tmux.sees("40 by score", window=window)
            tmux.keys("/", f"id:{PATTERN}", window=window)
            tmux.sees("1 of 40", "◐ estab", window=window)
            tmux.keys("Enter", window=window)
        time.sleep(AFTER_JUMP)
        start = time.monotonic()
        tmux.keys("p")
        tmux.sees("● prov")
        own = time.monotonic() - start
        tmux.sees("● prov", window="second")
        took = time.monotonic() - start
        assert took < max(SEEN_WITHIN, SLOWER * own), f"took {took:.2f} s, {own:.2f} s for itself"
        tmux.keys("u", window="second")
        tmux.sees("◐ estab", window="first")
        for window in ("first", "second"):
            leave(tmux, window)


def test_quick_decisions_are_logged_and_the_log_verifies(sample: Path, home: Path, tmp_path: Path) -> None:
    env = environment(home)
    add_questions(sample, env, 40)
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    before = ledger.read_bytes()
    with Tmux(tmp_path, env, (120, 40)) as tmux:
        tmux.start(dashboard(sample))
        tmux.sees("live")
        tmux.keys("2")
        decide(tmux, QUICK_DECISIONS)
        desk.leave(tmux)
    made = [json.loads(line) for line in ledger.read_bytes().removeprefix(before).splitlines()]
    decisions = [line for line in made if line["kind"] == "decision"]
    assert len(decisions) == QUICK_DECISIONS
    assert {line["by"] for line in decisions} == {"ana"}
    assert len({line["subject"] for line in decisions}) == QUICK_DECISIONS
    verify = python("-m", "core.cli", "log", "--verify", "--project", str(sample))
    assert subprocess.run(verify, env=env, cwd=ROOT, check=False).returncode == 0
