"""The dashboard in a browser."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.desk import AFTER_JUMP
from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS, environment

if CHROMIUM is None and "CI" not in os.environ:
    pytest.skip("no Chromium is installed", allow_module_level=True)

SCREENSHOT: Final = Path(__file__).parent / "screenshots" / "serve.png"
"""The page of the last run, for a look at it; not in Git."""


@contextmanager
def served(project: Path, home: Path, *options: str) -> Iterator[str]:
    """Serve a project; yields the address to open."""
    command = [sys.executable, "-m", "tui", "serve", str(project), "--port", "0", *options]
    with subprocess.Popen(command, env=environment(home), cwd=ROOT, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[-1]
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(TIMEOUT_SECONDS) == 0


async def test_the_page_is_a_full_window_terminal_that_takes_keys_at_once(
    sample: Path, home: Path, tmp_path: Path
) -> None:
    async with Browser(tmp_path / "profile", environment(home)) as browser:
        with served(sample, home) as address:
            await browser.open(address)
            await browser.sees("live")
            assert "key=" not in await browser.evaluate("location.href")
            await browser.press("3")
            await browser.sees("Write the types first")
            picture = base64.b64decode((await browser.call("Page.captureScreenshot"))["data"])
            SCREENSHOT.parent.mkdir(exist_ok=True)
            SCREENSHOT.write_bytes(picture)
            assert len(picture) > 20_000, "an empty page is a small picture"
            assert await browser.evaluate("document.title") == f"ralphdeck: {sample.name}"
            for scroller in ("document.documentElement", "document.querySelector('.xterm-viewport')"):
                assert await browser.evaluate(f"{scroller}.scrollHeight <= innerHeight"), scroller
                assert await browser.evaluate(f"{scroller}.clientWidth == innerWidth"), f"{scroller} has a scroll bar"
            columns, rows = await browser.evaluate(
                "[innerWidth, innerHeight].map((size, i) =>"
                " size / document.querySelector('.xterm-screen').getBoundingClientRect()[['width', 'height'][i]])"
            )
            assert 1 <= columns < 1.02 and 1 <= rows < 1.04, "the terminal fills the window up to a part of a cell"


async def test_a_browser_can_decide_only_with_write_access(sample: Path, home: Path, tmp_path: Path) -> None:
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    before = ledger.read_bytes()
    async with Browser(tmp_path / "profile", environment(home)) as browser:
        with served(sample, home) as address:
            await browser.open(address)
            await browser.sees("live")
            await browser.press("3")
            await browser.sees("by score")
            await browser.press("p")
            await browser.sees("read-only")
            host = address.partition("/?")[0]
            ws = host.replace("http", "ws")
            assert all(url.startswith((host, ws, "data:")) for url in browser.asked.values())
        assert ledger.read_bytes() == before
        with served(sample, home, "--write") as address:
            await browser.open(address)
            await browser.sees("live")
            await browser.press("3")
            await browser.sees("by score")
            await asyncio.sleep(AFTER_JUMP)
            await browser.press("g", "c", *"seen", "\r")
            await browser.until(lambda: ledger.read_bytes() != before, "the note in the ledger")
        assert ledger.read_bytes().startswith(before)
        assert b'"text":"seen"' in ledger.read_bytes()
