"""The checks of `ralphdeck doctor` on the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

from core.cli.support.connection_checks import NOTE, OK, WARNING, Found


def check_terminal() -> Iterator[Found]:
    """Check what the terminal can show, and how texts are copied."""
    import shutil

    term = os.environ.get("TERM", "")
    yield "TERM", WARNING if term in {"", "dumb"} else OK, term or "not set"
    depth = os.environ.get("COLORTERM") or ("256" if "256" in term else "few")
    yield "colours", NOTE, "off (NO_COLOR)" if os.environ.get("NO_COLOR") else depth
    encoding = (sys.stdout.encoding or "unknown").lower()
    yield "encoding", OK if "utf" in encoding else WARNING, encoding
    size = shutil.get_terminal_size()
    yield "size", WARNING if size.columns < 80 or size.lines < 24 else OK, f"{size.columns} x {size.lines}"
    if os.environ.get("TMUX"):
        yield _tmux()


def _tmux() -> Found:
    import subprocess

    command = ["tmux", "show-options", "-sv", "set-clipboard"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, timeout=2, check=False).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return "tmux", NOTE, f"cannot be queried: {error}"
    if shown == "on":
        return "tmux", OK, "set-clipboard on: copying works"
    hint = "to copy from the dashboard: tmux set -s set-clipboard on"
    return "tmux", WARNING, f"set-clipboard {shown or 'unknown'}; {hint}"
