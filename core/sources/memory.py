"""Cross-task memory: `memory/tasks/<uuid>.json` and `memory/task-index.json` (formats 3.8, C19)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from core.records.findings import Finding
from core.records.reflections import MemoryTask


def is_memory_file(file: str) -> bool:
    """Whether a project-relative path is a task file or the index of the cross-task memory."""
    raise NotImplementedError


def read_memory(file: str, value: Any, seen_at: datetime) -> tuple[tuple[MemoryTask, ...], tuple[Finding, ...]]:
    """The tasks that one decoded memory file tells; those of the index are `indexed` and name the index as file."""
    raise NotImplementedError


def join_memory(tasks: Iterable[MemoryTask]) -> dict[str, MemoryTask]:
    """Union by id of what task files and index tell; the task file wins (C19)."""
    raise NotImplementedError
