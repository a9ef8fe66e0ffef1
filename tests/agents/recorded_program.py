"""The program `ralphdeck` as agents find it, which records the events and answers of its hooks."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.agents.sandbox import ROOT

RECORDS: Final = "hooks"

_PROGRAM: Final = '''#!{python}
"""Runs ralphdeck; `ralphdeck hook` also writes its event, its answer and its errors into a folder."""
import os, sys, time

sys.path.insert(0, {root!r})


def read_all(handle):
    parts = []
    while part := os.read(handle, 1 << 16):
        parts.append(part)
    return b"".join(parts)


def run_recorded():
    """Return in a child process, in which the hook runs; the parent passes its answer on and ends."""
    record = os.path.join({records!r}, f"{{time.time_ns()}}-{{os.getpid()}}")
    with open(record + ".event", "wb") as file:
        file.write(read_all(0))
    event = os.open(record + ".event", os.O_RDONLY)
    errors = os.open(record + ".errors", os.O_WRONLY | os.O_CREAT)
    answer, output = os.pipe()
    process = os.fork()
    if process == 0:
        for new, old in ((event, 0), (output, 1), (errors, 2)):
            os.dup2(new, old)
        os.close(answer)
        os.close(output)
        return
    os.close(output)
    text = read_all(answer)
    os.write(1, text)
    with open(record + ".answer", "wb") as file:
        file.write(text)
    os._exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))


if sys.argv[1:2] == ["hook"] and "RALPHDECK_READONLY" not in os.environ:
    run_recorded()
from tui.__main__ import main

main()
'''


@dataclass(frozen=True)
class HookRecord:
    """One call of a hook."""

    event: dict[str, Any]
    answer: str
    errors: str

    @property
    def name(self) -> str:
        """The agent's name of the event."""
        return str(self.event.get("hook_event_name", ""))


def install_program(folder: Path) -> Path:
    """Write `ralphdeck` and `python` into a folder for the `PATH`; returns the folder with the records."""
    programs, records = folder / "bin", folder / RECORDS
    programs.mkdir(parents=True)
    records.mkdir()
    text = _PROGRAM.format(python=sys.executable, root=str(ROOT), records=str(records))
    (programs / "ralphdeck").write_text(text)
    (programs / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in programs.iterdir():
        program.chmod(0o755)
    return records


def read_records(records: Path) -> list[HookRecord]:
    """Read all calls of hooks in their order."""
    read = []
    for event in sorted(records.glob("*.event")):
        texts = [path.read_text() if path.exists() else "" for path in map(event.with_suffix, (".answer", ".errors"))]
        read.append(HookRecord(json.loads(event.read_bytes()), *texts))
    return read
