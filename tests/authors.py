"""Who decides in this process, as far as a test wants it: by default a person at a terminal."""

from __future__ import annotations

import pytest

from core.sources.liveness import ProcessSignals


def be_person(patch: pytest.MonkeyPatch) -> None:
    """Decide as a person at a terminal, without an agent above this process."""
    patch.setattr("core.cli.support.signature.is_at_terminal", lambda: True)
    patch.setattr("core.agents.agent_process.system_processes", ProcessSignals)


def be_script(patch: pytest.MonkeyPatch) -> None:
    """Decide as a process without a terminal."""
    patch.setattr("core.cli.support.signature.is_at_terminal", lambda: False)


def have_names(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Let the user have these names, the first one as login name."""
    patch.setattr("core.cli.support.signature.own_names", lambda: names)
