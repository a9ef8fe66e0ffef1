"""A page in headless Chromium, driven by the DevTools protocol; draws what the page's terminal was sent."""

from __future__ import annotations

import asyncio
import base64
import itertools
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import aiohttp

from tests.e2e.stream import Screen, feed

CHROMIUM: Final = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
_CELLS: Final = (250, 80)
"""Larger than the window."""
TIMEOUT_SECONDS: Final = 60.0
"""Seconds until a wait fails."""
_FLAGS: Final = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--remote-debugging-port=0",
)


class Browser:
    """Runs Chromium with one page until the block ends.

    Args:
        profile: An empty folder for its data.
        env: Its whole environment.
        size: Width and height of the window in pixels.
    """

    def __init__(self, profile: Path, env: Mapping[str, str], size: tuple[int, int] = (1280, 800)) -> None:
        assert CHROMIUM is not None
        self._profile = profile
        self._process = subprocess.Popen(
            [CHROMIUM, *_FLAGS, f"--window-size={size[0]},{size[1]}", f"--user-data-dir={profile}", "about:blank"],
            env=dict(env),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._raw = bytearray()
        self._drawn = 0
        self._terminal = ""
        """Request ID of the connection that the open page's terminal is drawn from; earlier pages may send on."""
        self.screen = Screen(*_CELLS)
        self.asked: dict[str, str] = {}
        """Address of every request of the page, by request ID."""

    async def __aenter__(self) -> Self:
        port = self._profile / "DevToolsActivePort"
        await self.until(lambda: port.exists() and port.read_text().count("\n") == 1, "the browser")
        address = f"http://127.0.0.1:{port.read_text().splitlines()[0]}/json/list"
        self._session = aiohttp.ClientSession()
        async with self._session.get(address) as answer:
            pages = [page for page in await answer.json() if page["type"] == "page"]
        self._socket = await self._session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
        self._reader = asyncio.create_task(self._read())
        for domain in ("Network", "Page"):
            await self.call(f"{domain}.enable")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._socket.close()
        await self._reader
        await self._session.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    async def _read(self) -> None:
        async for message in self._socket:
            answer = message.json()
            if "id" in answer:
                self._waiting.pop(answer["id"]).set_result(answer)
            elif answer["method"] == "Network.webSocketCreated":
                self._terminal = answer["params"]["requestId"]
                self._raw.clear()
                self._drawn = 0
                self.screen = Screen(*_CELLS)
            elif answer["method"] == "Network.webSocketFrameReceived":
                frame = answer["params"]["response"]
                if answer["params"]["requestId"] == self._terminal and frame["opcode"] == 2:
                    self._raw += base64.b64decode(frame["payloadData"])
            elif answer["method"] == "Network.requestWillBeSent":
                self.asked[answer["params"]["requestId"]] = answer["params"]["request"]["url"]

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and wait for its result."""
        number = next(self._numbers)
        self._waiting[number] = answer = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        answer = await answer
        assert "error" not in answer, answer
        return dict(answer["result"])

    async def open(self, address: str) -> None:
        """Open an address, and wait until its page has a terminal of its own."""
        self._terminal = ""
        await self.call("Page.navigate", url=address)
        await self.until(lambda: self._terminal != "", "the terminal of the page")

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        return (await self.call("Runtime.evaluate", expression=expression, returnByValue=True))["result"]["value"]

    async def press(self, *keys: str) -> None:
        """Press printable keys."""
        for key in keys:
            code = ord(key.upper())
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=key, windowsVirtualKeyCode=code)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def draw(self) -> str:
        """The text of the page's terminal."""
        self._drawn += feed(self.screen, bytes(self._raw[self._drawn :]))
        return self.screen.text

    async def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait until a condition is true."""
        start = time.monotonic()
        while not condition():
            assert time.monotonic() - start < TIMEOUT_SECONDS, f"timed out waiting for {what}:\n{self.draw()}"
            await asyncio.sleep(0.05)

    async def sees(self, *texts: str) -> None:
        """Wait until the page's terminal shows all texts."""
        await self.until(lambda: all(text in self.draw() for text in texts), f"{texts}")
