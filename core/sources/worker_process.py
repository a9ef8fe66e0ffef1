"""Worker processes that sweep and parse, and messages to and from them; imports little, so that one can start early."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import IO, Final, Self

SWEEP: Final = b""  # the request for a sweep; others are batches
COMMAND: Final = (
    "import json, sys; project, *sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from core.sources.parallel_parser import serve; serve(project)"
)
_MAX_REPLY: Final = 1 << 30
_PIPE_BYTES: Final = 1 << 20
_LENGTH: Final = 4  # bytes of the length before a message
_PROGRESS_SECONDS: Final = 0.05
_ENVIRONMENT: Final = ("LANG", "LC_", "LD_", "DYLD_")  # names of the variables that a worker gets start with these


def count_cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class WorkerProcess:
    """One worker process; killed at the end of the `with` block."""

    def __init__(self, project: object, command: str | None = None, variables: tuple[str, ...] = ()) -> None:
        """`command` reads the project, a JSON value, from its input; None is `COMMAND`.

        The worker gets the environment variables whose names begin with one of `variables`, besides the usual ones.
        """
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", COMMAND if command is None else command],
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
        setup = [project, *(str(Path(entry).absolute()) for entry in sys.path)]
        with contextlib.suppress(OSError):  # it has ended, as `receive` will find
            self.requests.write(json.dumps(setup).encode() + b"\n")
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


class EarlySweep:
    """A worker that starts with the program and sweeps the project while the rest is imported."""

    def __init__(self, project: str) -> None:
        self.worker = WorkerProcess(project)
        self._reply, self._found = b"", 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def reply(self, hung_seconds: float, progress: Callable[[int], None] | None = None) -> bytes:
        """Wait for the encoded result and return it once; empty if the worker ended or found nothing for some time.

        `progress` is called with the number of files found.
        """
        found, deadline = -1, 0.0
        while self._thread.is_alive():
            if self._found != found:
                found, deadline = self._found, monotonic() + hung_seconds
            elif monotonic() > deadline:
                self.worker.kill()
            self._thread.join(_PROGRESS_SECONDS)
            if progress is not None:
                progress(self._found)
        reply, self._reply = self._reply, b""  # megabytes, and the app keeps this object
        return reply

    def _run(self) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            self.worker.send(SWEEP)
            self.worker.receive()  # it is ready
            while count := self.worker.receive():
                self._found = int.from_bytes(count)
            self._reply = self.worker.receive()


def start_early(project: Path) -> EarlySweep | None:
    """Start a worker that sweeps a project; None without a second processor or if it cannot start."""
    with contextlib.suppress(OSError):
        return EarlySweep(str(project)) if count_cores() > 1 and sys.executable else None
    return None


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
