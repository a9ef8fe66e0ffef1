"""The dashboard in a browser."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.browser import CHROMIUM, Browser
from tests.e2e.terminal import ROOT, TIMEOUT_SECONDS, environment

if CHROMIUM is None and "CI" not in os.environ:
    pytest.skip("no Chromium is installed", allow_module_level=True)


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


async def test_a_browser_can_decide_only_with_write_access(sample: Path, home: Path, tmp_path: Path) -> None:
    ledger = sample / ".aiwg/ralph/shared/curation/ledger.jsonl"
    before = ledger.read_bytes()
    async with Browser(tmp_path / "profile", environment(home)) as browser:
        with served(sample, home) as address:
            await browser.open(address)
            await browser.sees("live", "2 Patterns")
            picture = base64.b64decode((await browser.call("Page.captureScreenshot"))["data"])
            assert len(picture) > 20_000, "an empty page is a small picture"
            await browser.click(400, 300)
            await browser.press("2")
            await browser.sees("by score")
            await browser.press("p")
            await browser.sees("read-only")
            host = address.partition("/?")[0]
            ws = host.replace("http", "ws")
            foreign = {url for url in browser.asked.values() if not url.startswith((host, ws, "data:"))}
            assert foreign <= browser.blocked, "nothing is fetched from elsewhere"
        assert ledger.read_bytes() == before
        with served(sample, home, "--write") as address:
            await browser.open(address)
            await browser.sees("live", "by score")
            await browser.click(400, 300)
            await browser.press("g", "c", *"seen", "\r")
            await browser.until(lambda: ledger.read_bytes() != before, "the note in the ledger")
        assert ledger.read_bytes().startswith(before)
        assert b'"text":"seen"' in ledger.read_bytes()
