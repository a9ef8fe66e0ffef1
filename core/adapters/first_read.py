"""The first read of all transcripts, which may be gigabytes, in a process of its own.

The process writes the states of the transcripts to the file of kept states at intervals, so nothing is lost if it is
killed. It ends when its parent does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from core.adapters.collector import Collector
from core.adapters.folders import Folders
from core.adapters.kept_states import KeptFile
from core.sources.worker_process import WorkerProcess, receive, send

if TYPE_CHECKING:
    from types import TracebackType

MIN_BYTES: Final = 32 << 20  # of transcripts that are worth a process
COMMAND: Final = (
    "import json, sys; setup, *sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from core.adapters.first_read import serve; serve(setup)"
)
_VARIABLES: Final = ("HOME", "XDG_")  # names of the variables that the process gets besides those of workers
_SAVE_BYTES: Final = 64 << 20  # read between two savings
_PROGRESS_SECONDS: Final = 0.2
_NICENESS: Final = 5


class FirstRead:
    """Starts the process; use it as a context manager, which ends it."""

    def __init__(self, folders: Folders) -> None:
        self._worker = WorkerProcess(_encode(folders), COMMAND, _VARIABLES)
        self._read: int | None = 0
        self._progressed = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._worker.kill()
        self._thread.join()
        self._worker.__exit__(kind, error, trace)

    @property
    def pid(self) -> int:
        return self._worker.process.pid

    def bytes_read(self, seconds: float) -> int | None:
        """Wait at most `seconds` for progress; return the bytes read, None at the end."""
        self._progressed.wait(seconds)
        self._progressed.clear()
        return self._read

    def _receive(self) -> None:
        with contextlib.suppress(OSError, EOFError, ValueError):
            while message := self._worker.receive():
                self._read = int.from_bytes(message)
                self._progressed.set()
        self._read = None
        self._progressed.set()


def serve(setup: dict[str, Any]) -> None:
    """Read all transcripts to their end; run in the process."""
    gc.freeze()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folders = _decode(setup)
    collector = Collector(folders, clock=lambda: datetime.now(UTC), kept=KeptFile(folders.project))
    read = saved = 0
    sent = monotonic()

    def note(count: int) -> None:
        nonlocal read, saved, sent
        read += count
        if read - saved >= _SAVE_BYTES:
            collector.save()
            saved = read
        if monotonic() - sent > _PROGRESS_SECONDS:
            sent = monotonic()
            send(sys.stdout.buffer, read.to_bytes(8))

    collector.set_limits(None, note)
    collector.look()
    collector.close()
    send(sys.stdout.buffer, b"")


def _encode(folders: Folders) -> dict[str, Any]:
    return {
        "project": str(folders.project),
        "worktrees": [str(tree) for tree in folders.worktrees],
        "home": str(folders.home) if folders.home is not None else None,
        "environment": dict(folders.environment),
    }


def _decode(setup: dict[str, Any]) -> Folders:
    return Folders(
        project=Path(setup["project"]),
        worktrees=tuple(map(Path, setup["worktrees"])),
        home=Path(setup["home"]) if setup["home"] is not None else None,
        environment=setup["environment"],
    )


def _end_with_parent() -> None:
    """End the process when its input is closed."""
    with contextlib.suppress(OSError, EOFError, ValueError):
        receive(sys.stdin.buffer)
    os._exit(1)
