"""The scripts that the demo plays, read from `sample_data/demo/`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from core.demo.sample import SAMPLE

_FOLDER: Final[Path] = SAMPLE / "demo"


class IterationScript(Struct, frozen=True, forbid_unknown_fields=True):
    """One iteration of a loop; quality is 0..100, `pattern` an ID or ""."""

    action: str
    result: str
    quality: int
    learning: str = ""
    pattern: str = ""
    worked: bool = True
    """Whether the pattern helped."""


class LoopScript(Struct, frozen=True, forbid_unknown_fields=True):
    """One loop, from its start (or from where the sample leaves it) to its end."""

    task: str
    iterations: tuple[IterationScript, ...]
    criteria: str = ""
    owner: str = "software-implementer"
    tags: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    """IDs of patterns that are injected at the start and never applied."""
    crashes: bool = False
    """The loop runs as a process that dies after the last iteration; otherwise it completes."""


class LoopScripts(Struct, frozen=True, forbid_unknown_fields=True):
    """Scripts for loops running in the sample, and for loops that start later."""

    running: tuple[LoopScript, ...]
    new: tuple[LoopScript, ...]


class ActionScript(Struct, frozen=True, forbid_unknown_fields=True):
    """One action of the agent protocol."""

    type: str
    target: str
    """The file, command, pattern or question."""
    reasoning: str
    expected: str
    output: str = ""
    error: str = ""
    """Why the action failed, "" if it succeeded."""
    change: tuple[str, str] | None = None
    """Old and new text of an edit."""
    quality: float | None = None
    """Quality of the work after this action, 0..1; it ends the iteration."""


class AttemptScript(Struct, frozen=True, forbid_unknown_fields=True):
    """One attempt; without an approach it continues the open one of the sample."""

    actions: tuple[ActionScript, ...]
    succeeds: bool
    reason: str
    learning: str = ""
    """The learning of the agent's reflection; with "" only the draft remains."""
    approach: str = ""
    steps: tuple[str, ...] = ()
    iteration: int = 1
    """The number of its first iteration."""


class TaskScript(Struct, frozen=True, forbid_unknown_fields=True):
    """One task; `id` names a task of the sample, "" creates a new one."""

    attempts: tuple[AttemptScript, ...]
    id: str = ""
    description: str = ""
    criteria: str = ""
    tags: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_loop_scripts() -> LoopScripts:
    """Read `loops.yaml` once."""
    return msgspec.yaml.decode((_FOLDER / "loops.yaml").read_bytes(), type=LoopScripts)


@lru_cache(maxsize=1)
def load_task_scripts() -> tuple[TaskScript, ...]:
    """Read `tasks.yaml` once."""
    return msgspec.yaml.decode((_FOLDER / "tasks.yaml").read_bytes(), type=tuple[TaskScript, ...])
