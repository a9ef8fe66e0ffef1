"""Writes the files: JSON as node writes it, times relative to one `now`."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any


class Tree:
    """Writes below `root/.aiwg`; every time is `now` minus a duration."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.now = now.astimezone(UTC).replace(microsecond=0)
        self.root = root

    def ago(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """The time this long before `now`."""
        return self.now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)

    def json(self, path: str, value: Any) -> None:
        """Write as `JSON.stringify(value, null, 2)`: two spaces, no trailing newline."""
        self.text(path, json.dumps(value, indent=2, ensure_ascii=False))

    def jsonl(self, path: str, values: Iterable[Mapping[str, Any]]) -> None:
        """Write one compact object per line."""
        self.text(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def text(self, path: str, text: str) -> None:
        """Write a text; `path` is relative to `.aiwg`."""
        target = self.root / ".aiwg" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")


def iso(moment: datetime) -> str:
    """A time as JavaScript's `toISOString()`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_seconds(moment: datetime) -> str:
    """ISO without milliseconds, as agents write it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def epoch_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def loop_id(task: str) -> str:
    """The ID that the aiwg tools make of a task: `ralph-<slug, cut at 30>-<8 hex>`."""
    slug = re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:30]
    return f"ralph-{slug}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"


def stable_uuid(name: str) -> str:
    """A UUID in version 4 format, always the same for the same name."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))
