"""Who decides in this process, as far as a test wants it: by default a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.sources.liveness import ProcessSignals, ProcFiles


def be_person(patch: pytest.MonkeyPatch) -> None:
    """Decide as a person at a terminal, without an agent above this process."""
    patch.setattr("core.cli.support.signature.is_at_terminal", lambda: True)
    patch.setattr("core.agents.agent_table.system_processes", ProcessSignals)


def be_script(patch: pytest.MonkeyPatch) -> None:
    """Decide as a process without a terminal."""
    patch.setattr("core.cli.support.signature.is_at_terminal", lambda: False)


def have_names(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the user have these names, the first one as login name."""
    patch.setattr("core.cli.support.signature.own_names", lambda: names)


def make_processes(root: Path, *commands: Sequence[str]) -> ProcFiles:
    """Make processes with the pids 2, 3 and so on; each started the next one."""
    for pid, command in enumerate(commands, start=2):
        folder = root / str(pid)
        folder.mkdir(parents=True)
        (folder / "cmdline").write_text("\0".join(command))
        (folder / "stat").write_text(f"{pid} ({command[0]}) S {pid - 1} {'0 ' * 17} {pid}00 0")
    return ProcFiles(root)
