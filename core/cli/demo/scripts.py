"""Scripts of the demo, read from `sample_data/demo/`."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from core.cli.demo.sample import SAMPLE

_FOLDER: Final[Path] = SAMPLE / "demo"


class IterationScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Iteration of a loop: `quality` 0..100, and the ID of the applied pattern or ""."""

    action: str
    result: str
    quality: int
    learning: str = ""
    pattern: str = ""
    worked: bool = True  # Whether the pattern helped.


class LoopScript(Struct, frozen=True, forbid_unknown_fields=True):
    """All further iterations of a loop, which may already be running in the sample."""

    task: str
    iterations: tuple[IterationScript, ...]
    criteria: str = ""
    owner: str = "software-implementer"
    tags: tuple[str, ...] = ()
    injected: tuple[str, ...] = ()
    """IDs of patterns that are injected when the loop starts, even if no iteration applies them."""
    crashes: bool = False  # Whether the loop's process dies after the last iteration; otherwise the loop completes.


class LoopScripts(Struct, frozen=True, forbid_unknown_fields=True):
    """Scripts of loops that run in the sample, and of loops that start later."""

    running: tuple[LoopScript, ...]
    new: tuple[LoopScript, ...]


class ActionScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Action that the simulated agent logs."""

    type: str
    target: str  # The file, command, search pattern or task description, by `type`.
    reasoning: str
    expected: str
    output: str = ""
    error: str = ""  # Why the action failed; "" if it succeeded.
    change: tuple[str, str] | None = None  # Old and new text of an edit.
    quality: float | None = None
    """Quality of the work after this action, 0..1, if the action ends the iteration; otherwise None."""


class AttemptScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Attempt at a task; without an approach, it continues the sample's open attempt."""

    actions: tuple[ActionScript, ...]
    succeeds: bool
    reason: str
    learning: str = ""
    """Learning of the agent's reflection; if "", the agent writes no reflection and the draft remains."""
    approach: str = ""
    steps: tuple[str, ...] = ()
    iteration: int = 1  # Number of the attempt's first iteration.


class TaskScript(Struct, frozen=True, forbid_unknown_fields=True):
    """Task with its attempts; `id` is that of a sample task, or "" for a new task."""

    attempts: tuple[AttemptScript, ...]
    id: str = ""
    description: str = ""
    criteria: str = ""
    tags: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def load_loop_scripts() -> LoopScripts:
    """Read `loops.yaml` once and cache the scripts."""
    return msgspec.yaml.decode((_FOLDER / "loops.yaml").read_bytes(), type=LoopScripts)


@lru_cache(maxsize=1)
def load_task_scripts() -> tuple[TaskScript, ...]:
    """Read `tasks.yaml` once and cache the scripts."""
    return msgspec.yaml.decode((_FOLDER / "tasks.yaml").read_bytes(), type=tuple[TaskScript, ...])
