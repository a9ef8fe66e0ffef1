"""Read the cross-task memory: `memory/tasks/<uuid>.json` and `task-index.json`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.records.reflections import MemoryTask
from core.sources import normalize
from core.sources.fields import Fields, document

if TYPE_CHECKING:
    from core.records.findings import Finding

INDEX: Final = ".aiwg/ralph/memory/task-index.json"


def read_memory(file: str, value: Any, modified_at: datetime) -> tuple[tuple[MemoryTask, ...], tuple[Finding, ...]]:
    """Read the tasks of a decoded task file, or of `INDEX` (these are `indexed`).

    `modified_at` is the file's mtime in UTC, used for tasks without a time.
    """
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    if file != INDEX:
        stem = file.rpartition("/")[2].removesuffix(".json")
        return (_task(fields, stem, modified_at),), tuple(findings)
    tasks = []
    for _, entry in fields.objects("tasks"):
        task_id = entry.text("task_id", "id")
        if task_id:
            tasks.append(replace(_task(entry, task_id, None), indexed=True))
        else:
            entry.add("missing-id", "the entry has no task_id; skipped", entry.pointer)
    return tuple(tasks), tuple(findings)


def join_memory(tasks: Iterable[MemoryTask]) -> dict[str, MemoryTask]:
    """Join the tasks of task files and index by ID; task files take precedence."""
    joined: dict[str, MemoryTask] = {}
    for task in tasks:
        other = joined.get(task.id)
        if other is None:
            joined[task.id] = task
        else:
            first = other if other.file != INDEX else task
            joined[task.id] = replace(first, indexed=task.indexed or other.indexed)
    return joined


def _task(fields: Fields, default_id: str, modified_at: datetime | None) -> MemoryTask:
    return fields.convert(
        MemoryTask,
        id=fields.text("task_id", "id") or default_id,
        description=fields.text("task_description", *normalize.TASK),
        at=fields.time("timestamp") or modified_at,
        outcome=normalize.outcome(fields.text("outcome")),
        quality=fields.rate("final_quality"),
        learnings=fields.lines("key_learnings"),
        file=fields.file,
    )
