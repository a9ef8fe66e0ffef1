"""Run a user-configured program or Git without a shell, and with limits."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from core.base.errors import RalphdeckError
from core.base.text import visible_line

MAX_OUTPUT: Final = 256 << 10  # bytes
_STOP_SECONDS: Final = 0.2  # time until a stop is noticed


class CommandFailed(RalphdeckError):
    """A program failed, was stopped or printed too much; its name begins the text."""


def run_user_command(
    command: Sequence[str], request: bytes, seconds: float, is_stopped: Callable[[], bool], *, reads: bool = True
) -> bytes:
    """Run a user's command in the home folder, so that no project program is found."""
    return run_program(command, request, seconds, is_stopped=is_stopped, reads=reads, folder=Path.home())


def run_program(
    command: Sequence[str],
    request: bytes,
    seconds: float,
    *,
    folder: Path,
    is_stopped: Callable[[], bool] = bool,
    reads: bool = True,
    environment: Mapping[str, str] | None = None,
    most: int = MAX_OUTPUT,
) -> bytes:
    """Return a command's output for a request on stdin; nothing unless `reads`.

    Raises CommandFailed if it cannot be run, ends with another exit code than 0, prints more than `most` bytes, takes
    longer than `seconds`, or `is_stopped` says so; it is killed then, with its children. What it prints on standard
    error is dropped. `environment` replaces the variables of this process.
    """
    deadline = time.monotonic() + seconds
    with tempfile.TemporaryFile() as stdin:
        stdin.write(request)
        stdin.seek(0)
        try:
            # A session of its own, so that its children can be killed with it.
            process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=subprocess.PIPE if reads else subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CommandFailed(f"{_title(command)} cannot be run: {error}") from None
    try:
        output = _read(process, deadline, is_stopped, command, most)
        while (code := process.poll()) is None:
            _check(deadline, is_stopped, command)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)
    except BaseException as error:
        # The process was not waited for, so that no other group can have its number.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise CommandFailed(f"{_title(command)} gave no answer within {seconds:g} s.") from None
        raise
    finally:
        if process.stdout is not None:
            process.stdout.close()
    if code:
        raise CommandFailed(f"{_title(command)} ended with exit code {code}.")
    return output


def _check(deadline: float, is_stopped: Callable[[], bool], command: Sequence[str]) -> None:
    """Raise CommandFailed if `is_stopped`, TimeoutExpired at the deadline."""
    if is_stopped():
        raise CommandFailed(f"{_title(command)} was stopped.")
    if time.monotonic() > deadline:
        raise subprocess.TimeoutExpired(list(command), 0)


def _read(
    process: subprocess.Popen[bytes],
    deadline: float,
    is_stopped: Callable[[], bool],
    command: Sequence[str],
    most: int,
) -> bytes:
    """Read all output; raises as `_check` does."""
    output = bytearray()
    if process.stdout is None:
        return b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            _check(deadline, is_stopped, command)
            if selector.select(_STOP_SECONDS):
                chunk = os.read(process.stdout.fileno(), 1 << 16)
                output += chunk
                if not chunk:
                    return bytes(output)
                if len(output) > most:
                    raise CommandFailed(f"{_title(command)} printed more than {most >> 10} KiB.")


def _title(command: Sequence[str]) -> str:
    return visible_line(command[0], 80)
