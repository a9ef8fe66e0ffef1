"""Attempts at tasks: `tasks/<id>/trajectory.json` of (1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from core.records.attempts import Attempt
from core.records.findings import Finding
from core.sources import dialects
from core.sources.fields import document

_FILE: Final = re.compile(r"\.aiwg/ralph/tasks/(?P<task>[^/]+)/trajectory\.json")


def is_trajectory(file: str) -> bool:
    """Whether a project-relative path is the trajectory of a task."""
    return _FILE.fullmatch(file) is not None


def read_attempts(file: str, value: Any) -> tuple[tuple[Attempt, ...], tuple[Finding, ...]]:
    """The attempts that one decoded trajectory tells of, by the name of their task's folder.

    Args:
        file: A path for which `is_trajectory` is true.
        value: The decoded document, of any JSON type.
    """
    findings: list[Finding] = []
    place = _FILE.fullmatch(file)
    fields = document(file, value, findings)
    if place is None or fields is None:
        return (), tuple(findings)
    attempts = []
    for _, entry in fields.objects("attempts"):
        number = entry.count("attempt_id", "attempt", "id")
        if number is None:
            entry.add("missing-id", "an attempt without attempt_id", entry.pointer)
            continue
        attempts.append(
            Attempt(
                task_id=place["task"],
                number=number,
                started_at=entry.time("started", *dialects.STARTED),
                ended_at=entry.time("ended", *dialects.ENDED),
                outcome=dialects.outcome(entry.text("outcome", "status")),
                plan=entry.text("plan"),
                iterations=entry.count("iterations"),
                file=file,
            )
        )
    return tuple(attempts), tuple(findings)


def join_attempts(attempts: Iterable[Attempt]) -> dict[str, Attempt]:
    """By id; of two entries with one number the last one counts."""
    return {attempt.id: attempt for attempt in attempts}
