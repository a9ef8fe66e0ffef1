"""Runs commands in forks, with a fault on the way: `python -m tests.endurance.faulty_commands`.

Reads one JSON object per line, `{"arguments": [...], "kill_before": N, "full_from": N}`, and prints one per line,
`{"code": exit code or null for a killed process, "output": text, "reached": whether the fault was met}`. Calls that
change the disk are counted from 1. In front of call `kill_before` the process kills itself; from call `full_from` on,
the disk has no space left: nothing is created or written, while renames and removals still work.
"""

from __future__ import annotations

import builtins
import errno
import io
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import core.files.atomic_write
from core.cli.program import main

CREATING = ("link", "mkdir")
CHANGING = ("unlink", "rename", "replace", "ftruncate", "rmdir")
STANDARD_STREAMS = (0, 1, 2)


class Faults:
    """Counts the calls that change the disk, and makes one of them fail."""

    def __init__(self, kill_before: int, full_from: int, met: Callable[[], object]) -> None:
        self._kill_before = kill_before
        self._full_from = full_from
        self._met = met
        self._calls = 0

    def count(self, *, needs_space: bool) -> None:
        """Count a call; dies or raises `OSError` (ENOSPC) at the chosen one."""
        self._calls += 1
        if self._calls == self._kill_before:
            self._met()
            os.kill(os.getpid(), signal.SIGKILL)
        if needs_space and 0 < self._full_from <= self._calls:
            self._met()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def install(self) -> None:
        """Replace the functions of this process by counting ones."""

        def counted(function: Callable[..., Any], *, needs_space: bool) -> Callable[..., Any]:
            def call(*arguments: Any, **options: Any) -> Any:
                self.count(needs_space=needs_space)
                return function(*arguments, **options)

            return call

        for name in (*CREATING, *CHANGING):
            setattr(os, name, counted(getattr(os, name), needs_space=name in CREATING))
        setattr(core.files.atomic_write, "_exchange", counted(core.files.atomic_write._exchange, needs_space=False))  # noqa: B010
        write, open_file, open_handle = os.write, io.open, os.open

        def write_counted(handle: int, data: bytes) -> int:
            if handle not in STANDARD_STREAMS:
                self.count(needs_space=True)
            return write(handle, data)

        def open_file_counted(file: Any, mode: str = "r", *arguments: Any, **options: Any) -> Any:
            if set(mode) & set("wax+") and file != os.devnull:
                self.count(needs_space=True)
            return open_file(file, mode, *arguments, **options)

        def open_handle_counted(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
            if flags & os.O_CREAT and not os.path.exists(path):  # noqa: PTH110  # may be a descriptor-relative name
                self.count(needs_space=True)
            return open_handle(path, flags, *arguments, **options)

        for module, name, function in (
            (os, "write", write_counted),
            (os, "open", open_handle_counted),
            (io, "open", open_file_counted),
            (builtins, "open", open_file_counted),
        ):
            setattr(module, name, function)


def run(arguments: list[str], kill_before: int, full_from: int) -> dict[str, Any]:
    """Run one command in a fork."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as met:
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            write = os.write
            Faults(kill_before, full_from, lambda: write(met.fileno(), b".")).install()
            code = 70
            try:
                main(arguments)
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 1 if end.code else 0
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        output.seek(0)
        met.seek(0)
        return {
            "code": status if status >= 0 else None,
            "output": output.read().decode("utf-8", "replace"),
            "reached": bool(met.read()),
        }


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(**json.loads(line))) + "\n")
        sys.stdout.flush()
