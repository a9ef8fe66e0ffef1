"""The file tree being written: JSON as node writes it, times counted back from one `now`."""

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
    """Writes below `root/.aiwg`; every time is `now` minus something, so the tree can be made for any day."""

    def __init__(self, root: Path, now: datetime) -> None:
        self.now = now.astimezone(UTC).replace(microsecond=0)
        self.root = root

    def ago(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> datetime:
        """That long before `now`."""
        return self.now - timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)

    def json(self, path: str, value: Any) -> None:
        """As `JSON.stringify(value, null, 2)`: two spaces, no trailing newline."""
        self.text(path, json.dumps(value, indent=2, ensure_ascii=False))

    def jsonl(self, path: str, values: Iterable[Mapping[str, Any]]) -> None:
        """One compact object a line."""
        self.text(path, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def text(self, path: str, text: str) -> None:
        """`path` is relative to `.aiwg`."""
        target = self.root / ".aiwg" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")


def iso(moment: datetime) -> str:
    """As JavaScript's `toISOString()`."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_seconds(moment: datetime) -> str:
    """ISO without milliseconds, as the documents' examples and agents write it."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def epoch_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def loop_id(task: str) -> str:
    """The id that upstream makes of a task: `ralph-<slug, cut at 30>-<8 hex>`."""
    slug = re.sub(r"[^a-z0-9]+", "-", task.lower()).strip("-")[:30]
    return f"ralph-{slug}-{hashlib.sha256(task.encode()).hexdigest()[:8]}"


def stable_uuid(name: str) -> str:
    """The same version-4-like UUID for the same name, always."""
    return str(uuid.UUID(bytes=hashlib.sha256(name.encode()).digest()[:16], version=4))
