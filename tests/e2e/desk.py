"""Answers many review questions one after the other, as an experienced reviewer does."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS
from tests.e2e.tmux import PROMPT, Tmux

ANSWERS: Final = ("a", "x")
"""Keys that decide at once, by preference; used in turn."""
AFTER_JUMP: Final = 0.6
"""Seconds after which a deciding key acts on another screen."""
_OFFERED: Final = re.compile(r"^[ ▌>]([a-z])  (?:yes|no) ", re.MULTILINE)
_COMPUTING: Final = re.compile(r"^[ ▌>][a-z]  (?:yes|no) .*…$", re.MULTILINE)
_AT: Final = re.compile(
    r"^ (.*?) +([\d,]+) of (?:[\d,]+|…)(?:  \+[\d,]+ new)?(?: · about [\d,]+ min)?\s*\n (.*?)\s*$", re.MULTILINE
)
_TITLE: Final = 25
"""Characters of a title that its row always has room for."""
_LOOP: Final = "ralph-fix-user-validation-in-sign-up-c4c69b76"


def at_question(screen: str) -> str:
    """Identifies the question by its title and subject: its number in the queue changes while questions arrive."""
    heading = _AT.search("\n".join(screen.splitlines()[1:4]))  # below the purpose of the screen, at its first visit
    return f"{heading[1][:_TITLE]}\n{heading[3]}" if heading else ""


def add_questions(project: Path, env: Mapping[str, str], count: int) -> None:
    """Add patterns that need a decision: half fail too often, half are imported."""
    file = project / ".aiwg/ralph/shared/patterns/error-patterns.json"
    document = json.loads(file.read_text(encoding="utf-8"))
    document["pattern_registry"]["error_patterns"] += [_pattern(number, failing=True) for number in range(count // 2)]
    file.write_text(json.dumps(document), encoding="utf-8")
    arriving = project.with_name("arriving.json")
    records = [_pattern(number, failing=False) for number in range(count // 2, count)]
    arriving.write_text(json.dumps({"pattern_registry": {"error_patterns": records}}), encoding="utf-8")
    command = [sys.executable, "-m", "core.cli", "pattern", "import", "--input", str(arriving)]
    subprocess.run([*command, "--project", str(project)], env=dict(env), cwd=ROOT, check=True, capture_output=True)


def _pattern(number: int, *, failing: bool) -> dict[str, Any]:
    """A pattern that resembles no other."""
    words = hashlib.sha256(str(number).encode()).hexdigest()
    message = " ".join(words[at : at + 7] for at in range(0, 56, 7))
    used = datetime.now(UTC) - timedelta(days=1 + number / 50)
    stamp = f"{used:%Y-%m-%dT%H:%M:%SZ}"
    return {
        "pattern_id": f"pat-error-desk-{words[:8]}-{number + 1:03}",
        "error_signature": {"error_type": "TypeError", "error_pattern": message},
        "fix_approach": {"description": f"Look at {message}", "fix_category": "add_type_validation"},
        "tags": [words[:5]],
        "source_loops": [{"loop_id": _LOOP, "timestamp": stamp}],
        "success_rate": 0.2 if failing else 1.0,
        "usage_count": 5,
        "successful_applications": 1 if failing else 5,
        "failed_applications": 4 if failing else 0,
        "first_discovered": stamp,
        "last_used": stamp,
    }


def decide(tmux: Tmux, times: int) -> list[float]:
    """Answer questions, each as soon as the forecast of its answers is on screen.

    Returns:
        Seconds from each key to the next question with its forecasts.
    """
    text = _ready(tmux, "")
    time.sleep(AFTER_JUMP)
    taken = []
    for number in range(times):
        offered = _OFFERED.findall(text)
        wanted = ANSWERS[number % 2 :] + ANSWERS
        key = next(key for key in wanted if key in offered)
        start = time.perf_counter()
        tmux.keys(key)
        text = _ready(tmux, at_question(text))
        taken.append(time.perf_counter() - start)
    return taken


def leave(tmux: Tmux) -> float:
    """Quit the dashboard; returns the seconds until everything is written and the prompt is back."""
    start = time.perf_counter()
    tmux.keys("q")
    tmux.until(lambda: tmux.text().rstrip().endswith(PROMPT.strip()), "the prompt")
    return time.perf_counter() - start


def _ready(tmux: Tmux, after: str) -> str:
    """The screen with the question after question `after`, once its forecasts are shown."""
    start = time.monotonic()
    while time.monotonic() - start < TIMEOUT_SECONDS:
        text = tmux.text()
        if at_question(text) not in ("", after) and _OFFERED.search(text) and not _COMPUTING.search(text):
            return text
        time.sleep(0.01)
    raise AssertionError(f"timed out waiting for the question after {after or 'the start'}:\n{tmux.text()}")
