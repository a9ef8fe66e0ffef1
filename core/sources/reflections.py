"""Reflections: seven shapes on disk, one record (formats C9, 3.14)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from core.records.findings import Finding
from core.records.reflections import Reflection


def reflection_shape(file: str) -> str:
    """Which shape of reflection a project-relative file can hold (a value of `Reflection.shape`), or "" for none."""
    raise NotImplementedError


def read_reflections(
    file: str, value: Any, seen_at: datetime
) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    """All reflections told in one file for which `reflection_shape` names a shape.

    Args:
        file: Project-relative path.
        value: The decoded JSON or YAML document; for `.jsonl` the list of its decoded lines.
        seen_at: The file's mtime, UTC.
    """
    raise NotImplementedError


def reflection_key(reflection: Reflection) -> str:
    """Reflections with different keys are never the same one: the group to join again after a change."""
    raise NotImplementedError


def join_reflections(
    reflections: Iterable[Reflection], aliases: Mapping[str, str]
) -> dict[str, Reflection]:
    """By id, each told once: the same sentence of the same loop and iteration is one reflection (C9).

    Args:
        reflections: Whole groups (see `reflection_key`), from any number of files.
        aliases: Other ids of loops -> the id of the row (`LoopBook.aliases`).
    """
    raise NotImplementedError
