"""TCP proxy on the loopback interface that can stop forwarding without closing, as a network that is cut does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Final

_CHUNK: Final = 65_536


class Proxy:
    """Forwards connections to a port until `cut`; then bytes vanish, and no side is informed."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._is_cut = threading.Event()
        self._sockets: list[socket.socket] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Lose everything from now on; new connections are accepted and get no answer."""
        self._is_cut.set()

    def close(self) -> None:
        self._is_cut.set()
        for one in (self._server, *self._sockets):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._server.accept()
                self._sockets.append(client)
                if self._is_cut.is_set():
                    continue
                server = socket.create_connection(("127.0.0.1", self._target))
                self._sockets.append(server)
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, target), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                if not self._is_cut.is_set():
                    target.sendall(data)
            if not self._is_cut.is_set():
                target.close()
