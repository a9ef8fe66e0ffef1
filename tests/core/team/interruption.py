"""Interrupts a sync before or after any call of the server or write of its state.

As a program, it synchronizes a project and kills itself: `python -m tests.core.team.interruption PROJECT AFTER`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final
from unittest import mock

from core.cli.program import run
from core.team.local_state import LocalState
from core.team.server import Space

_CALLS: Final = ("add_events", "put_patterns", "decide", "patterns", "sums", "decisions", "join_project", "members")
_WRITES: Final = ("confirm", "set_texts", "set_facts", "set_sums", "forget_changed", "add_decisions", "add_uses")


@contextmanager
def interrupted(after: int | None, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at one of the moments, counted from 1; None: never."""
    left = after

    def count() -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left <= 0:
                left = None
                stop()

    def counted(owner: type, name: str) -> Any:
        function = getattr(owner, name)

        def wrapper(*args: Any, **options: Any) -> Any:
            count()
            found = function(*args, **options)
            count()
            return found

        return mock.patch.object(owner, name, wrapper)

    with ExitStack() as stack:
        for owner, names in ((Space, _CALLS), (LocalState, _WRITES)):
            for name in names:
                stack.enter_context(counted(owner, name))
        yield


def main(project: Path, after: int) -> int:
    with interrupted(after, lambda: os.kill(os.getpid(), signal.SIGKILL)):
        return run(["team", "sync", "--project", str(project)])


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
