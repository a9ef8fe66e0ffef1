"""Server that shows the dashboard in a browser, based on textual-serve.

A visitor has the rights of the user who started the server. The server therefore listens only on the loopback
interface and requires the key of the printed address. Pages of other sites in the same browser cannot connect.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shlex
import socket
from collections.abc import Awaitable, Callable, Sequence
from hmac import compare_digest
from pathlib import Path
from typing import Final

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from textual_serve.server import Server

HOST: Final = "127.0.0.1"
_POLICY: Final = (
    "default-src 'self'; img-src 'self' data:; style-src 'self' 'unsafe-inline'; script-src 'self' 'unsafe-inline'; "
    "connect-src 'self' ws://{place}; frame-ancestors 'none'"
)
"""Content-Security-Policy: nothing is loaded from other hosts."""
_PAGES: Final = Path(__file__).parent / "web"
"""Folder of the page that replaces textual-serve's, which loads a font from another host."""

_CELLS: Final = re.compile("[1-9][0-9]{0,3}")  # of a terminal, in one direction

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class DeckServer(Server):
    """Starts one process of `command`, a dashboard, per browser tab.

    `announce` receives the address, including the key, as soon as it can be opened. `title` is the name of the page.
    """

    def __init__(self, command: Sequence[str], *, port: int, title: str, announce: Callable[[str], None]) -> None:
        super().__init__(shlex.join(command), HOST, port, title=title, templates_path=_PAGES)
        self._place = f"{HOST}:{port}"
        self._key = secrets.token_urlsafe(16)
        self._cookie = f"ralphdeck-{port}"
        self._announce = announce
        self._tabs: set[asyncio.Task[object]] = set()

    def initialize_logging(self) -> None:
        """Log only warnings: requests contain the key. Skip requests that are not HTTP."""
        logging.basicConfig(level=logging.WARNING, format="%(message)s")
        logging.getLogger("aiohttp.server").addFilter(_is_parsed_request)

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.headers.get("Host") != self._place or request.headers.get("Origin", self.public_url) != (
            self.public_url
        ):
            raise web.HTTPForbidden(text=f"Only {self.public_url} may connect")
        if request.path.startswith("/static/"):
            return await handler(request)
        given = request.query.get("key", request.cookies.get(self._cookie, ""))
        if not compare_digest(given.encode(), self._key.encode()):
            raise web.HTTPForbidden(
                text="The key is missing or wrong. Open the whole address that ralphdeck serve has printed."
            )
        response = await handler(request)
        if not response.prepared:
            response.headers["Content-Security-Policy"] = _POLICY.format(place=self._place)
            response.headers["Referrer-Policy"] = "no-referrer"
            response.set_cookie(self._cookie, self._key, httponly=True, samesite="Strict")
        return response

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        """Start a dashboard for a tab; refuse sizes with which it would crash."""
        for size in (request.query.get("width", "80"), request.query.get("height", "24")):
            if not _CELLS.fullmatch(size):
                raise web.HTTPBadRequest(text="width and height are numbers of cells, 1 to 9999")
        tab = asyncio.current_task()
        assert tab is not None
        self._tabs.add(tab)
        try:
            return await super().handle_websocket(request)
        finally:
            self._tabs.discard(tab)

    async def on_startup(self, app: web.Application) -> None:
        self._announce(f"{self.public_url}/?key={self._key}")

    async def on_shutdown(self, app: web.Application) -> None:
        """Cancel the open tabs; otherwise the server waits a minute for them."""
        for tab in self._tabs:
            tab.cancel()


def _is_parsed_request(record: logging.LogRecord) -> bool:
    """Drop records about requests that cannot be parsed; they are answered with 400."""
    return record.exc_info is None or not isinstance(record.exc_info[1], HttpProcessingError)


def serve(command: Sequence[str], *, port: int, title: str, announce: Callable[[str], None]) -> None:
    """Serve until interrupted, on a free port if `port` is 0.

    Raises OSError if the port is taken, before the address is announced.
    """
    with socket.create_server((HOST, port)) as listening:
        server = DeckServer(command, port=listening.getsockname()[1], title=title, announce=announce)
        server.initialize_logging()
        web.run_app(server._make_app(), sock=listening, print=None)
