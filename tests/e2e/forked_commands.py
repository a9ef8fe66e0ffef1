"""Runs commands, each in a fork of this process: `python -m tests.e2e.forked_commands`.

Reads one JSON list of arguments per line from standard input and prints one exit code per line. A fork saves each
command the start of Python and the import of what most commands need.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import sys
from types import ModuleType

import core
from tui.cli import main


def run(arguments: list[str]) -> int:
    """Run one command without output; returns its exit code."""
    pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(quiet, stream)
        try:
            main(arguments)
        except SystemExit as end:
            os._exit(end.code if isinstance(end.code, int) else 1 if end.code else 0)
        except BaseException:
            os._exit(70)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def import_all(package: ModuleType) -> None:
    """Import all modules of a package, which most commands would import one after the other."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    import_all(core)
    for line in sys.stdin:
        sys.stdout.write(f"{run(json.loads(line))}\n")
        sys.stdout.flush()
