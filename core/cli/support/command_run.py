"""Run a command that the user typed: pass its output on, and keep a copy (docs/safety.md#commands)."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, NamedTuple

from core.base.errors import BadInput
from core.base.text import visible_line

MAX_COPY: Final = 4 << 20  # bytes of output that are kept: half from its start, half from its end
_CHUNK: Final = 1 << 16
_LINGER_SECONDS: Final = 0.5  # wait for output of programs that the command left running
_POLL_SECONDS: Final = 0.1
_SIGNALLED: Final = 128  # plus the number of the signal, as in a shell


class CommandRun(NamedTuple):
    """A command that ended."""

    exit_code: int
    output: bytes  # standard output and standard error, as they came
    report: bytes  # standard output alone
    duration_ms: float


class _Copy:
    """The start and the end of a stream."""

    def __init__(self) -> None:
        self._start = bytearray()
        self._end = bytearray()

    def add(self, data: bytes) -> None:
        room = max(MAX_COPY // 2 - len(self._start), 0)
        self._start += data[:room]
        self._end += data[room:]
        if len(self._end) > MAX_COPY:
            del self._end[: -MAX_COPY // 2]

    def get(self) -> bytes:
        return bytes(self._start + self._end[-MAX_COPY // 2 :])


def run_command(words: Sequence[str], *, quiet_stdout: bool = False) -> CommandRun:
    """Run a command in the current folder without a shell, and wait for it.

    With `quiet_stdout` its standard output goes to standard error. An interrupt reaches the command too; it is raised
    after the command has ended. Raises BadInput if the command cannot be started.
    """
    started = time.monotonic()
    try:
        child = subprocess.Popen(list(words), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot run {visible_line(words[0], 120)}: {reason}") from None
    output, report = _Copy(), _Copy()
    is_interrupted = False
    assert child.stdout is not None and child.stderr is not None
    with child.stdout, child.stderr, selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ, 2 if quiet_stdout else 1)
        selector.register(child.stderr, selectors.EVENT_READ, 2)
        ended: float | None = None
        while selector.get_map():
            try:
                ready = selector.select(_POLL_SECONDS)
            except KeyboardInterrupt:
                is_interrupted = True
                continue
            if not ready:
                ended = ended or (time.monotonic() if child.poll() is not None else None)
                if ended is not None and time.monotonic() - ended > _LINGER_SECONDS:
                    break
            for key, _ in ready:
                data = os.read(key.fd, _CHUNK)
                if not data:
                    selector.unregister(key.fileobj)
                    continue
                output.add(data)
                if key.fileobj is child.stdout:
                    report.add(data)
                with suppress(OSError):  # the reader of the output has ended; the run is recorded all the same
                    _write(key.data, data)
    while child.poll() is None:
        try:
            child.wait()
        except KeyboardInterrupt:
            is_interrupted = True
    if is_interrupted:
        raise KeyboardInterrupt
    code = child.returncode if child.returncode >= 0 else _SIGNALLED - child.returncode
    return CommandRun(code, output.get(), report.get(), (time.monotonic() - started) * 1000)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
