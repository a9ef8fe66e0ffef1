"""The first read of all transcripts, which may be gigabytes, in a process of its own.

The process writes the states of the transcripts to the file of kept states at intervals, so nothing is lost if it is
killed. It ends when its parent does.
"""

from __future__ import annotations

import contextlib
import gc
import os
import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, Final, Self

import msgspec

from core.sources.adapters.collector import Collector
from core.sources.adapters.folders import Folders
from core.sources.adapters.transcripts import KeptFile

if TYPE_CHECKING:
    from types import TracebackType

MIN_BYTES: Final = 32 << 20  # of transcripts that are worth a process
_COMMAND: Final = (
    "import json, sys; setup, *sys.path[:] = json.loads(sys.stdin.buffer.readline()); "
    "from core.sources.adapters.first_read import serve; serve(setup)"
)
_VARIABLES: Final = ("LANG", "LC_", "LD_", "DYLD_", "HOME", "XDG_")
"""Beginnings of the names of the environment variables that the process gets: no secrets are among them."""
_SAVE_BYTES: Final = 64 << 20  # read between two savings
_PROGRESS_SECONDS: Final = 0.2
_NICENESS: Final = 5


class FirstRead:
    """Starts the process; use it as a context manager, which ends it."""

    def __init__(self, folders: Folders) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _COMMAND],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=os.sep,
            env={name: value for name, value in os.environ.items() if name.startswith(_VARIABLES)},
            process_group=0,  # it gets no interrupt of the terminal; a stopped one ends when its parent is killed
        )
        setup = [folders, *(str(Path(entry).absolute()) for entry in sys.path)]
        with contextlib.suppress(OSError):  # it has ended, as `_receive` will find
            self._input.write(msgspec.json.encode(setup, enc_hook=str) + b"\n")
            self._input.flush()
        self._read: int | None = 0
        self._progressed = threading.Event()
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._thread.join()
        with contextlib.suppress(OSError):  # a setup that was not sent
            self._input.close()
        self._process.wait()
        self._output.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _input(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def _output(self) -> IO[bytes]:
        assert self._process.stdout is not None
        return self._process.stdout

    def bytes_read(self, seconds: float) -> int | None:
        """Wait at most `seconds` for progress; return the bytes read, None at the end."""
        self._progressed.wait(seconds)
        self._progressed.clear()
        return self._read

    def _receive(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            for line in self._output:
                self._read = int(line)
                self._progressed.set()
        self._read = None
        self._progressed.set()


def serve(setup: dict[str, Any]) -> None:
    """Read all transcripts to their end; run in the process."""
    gc.freeze()
    with contextlib.suppress(OSError):
        os.nice(_NICENESS)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    folders = msgspec.convert(setup, Folders, dec_hook=_path)
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
            sys.stdout.write(f"{read}\n")
            sys.stdout.flush()

    collector.set_limits(None, note)
    collector.look()
    collector.close()


def _path(kind: type, value: str) -> Path:
    """Return the path of a decoded text; the other fields have types of JSON."""
    return Path(value)


def _end_with_parent() -> None:
    """End the process when its input is closed."""
    with contextlib.suppress(OSError):
        os.read(sys.stdin.fileno(), 1)  # a blocked buffered read would abort the process at its own end
    os._exit(1)
