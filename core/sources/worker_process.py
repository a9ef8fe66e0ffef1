"""Worker processes, and messages to and from them."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

_MAX_REPLY: Final = 1 << 30
_PIPE_BYTES: Final = 1 << 20
_LENGTH: Final = 4  # bytes of the length before a message
_ENVIRONMENT: Final = ("LANG", "LC_", "LD_", "DYLD_")  # names of the variables that a worker gets start with these


class WorkerProcess:
    """One worker process; killed at the end of the `with` block."""

    def __init__(self, setup: object, command: str, variables: tuple[str, ...] = ()) -> None:
        """`command` reads the setup, a JSON value, from its input.

        The worker gets the environment variables whose names begin with one of `variables`, besides the usual ones.
        """
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            env={name: value for name, value in os.environ.items() if name.startswith(_ENVIRONMENT + variables)},
            process_group=0,  # it gets no interrupt of the terminal; a stopped one ends when its parent is killed
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.requests, self.replies = self.process.stdin, self.process.stdout
        with contextlib.suppress(ImportError, AttributeError, OSError):  # only Linux has larger pipes
            import fcntl

            fcntl.fcntl(self.replies, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        lines = [setup, *(str(Path(entry).absolute()) for entry in sys.path)]
        with contextlib.suppress(OSError):  # it has ended, as `receive` will find
            self.requests.write(json.dumps(lines).encode() + b"\n")
            self.requests.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        with contextlib.suppress(OSError):  # a request that was not sent
            self.requests.close()
        self.process.wait()
        self.replies.close()

    def kill(self) -> None:
        self.process.kill()

    def send(self, message: bytes) -> None:
        send(self.requests, message)

    def receive(self) -> bytes:
        """Read one message; raises EOFError at the end, ValueError if it is too large to be one."""
        return receive(self.replies)


def send(stream: IO[bytes], message: bytes) -> None:
    """Write one message."""
    stream.write(len(message).to_bytes(_LENGTH) + message)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes:
    """Read one message; raises EOFError at the end, ValueError if it is too large to be one."""
    size = int.from_bytes(_read(stream, _LENGTH))
    if size > _MAX_REPLY:
        raise ValueError
    return _read(stream, size)


def _read(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        raise EOFError
    return data
