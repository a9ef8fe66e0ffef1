"""Count one use of a pattern in its record."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any, Final

from core.config.paths import PATTERN_FILES, ProjectPaths
from core.records.times import iso
from core.sources.key_style import RecordText
from core.sources.pattern_text import find, merge_records
from core.storage.atomic_write import curation_lock, rewrite

_RETRY_SECONDS: Final = (0.02, 0.1)


def count_use(project: ProjectPaths, pattern_id: str, worked: bool, now: datetime) -> None:
    """Increment the counts in the pattern's record; does nothing if no pattern file contains the pattern.

    For an anti-pattern `worked` means that avoiding the approach was right.
    """
    with curation_lock(project):
        for name in PATTERN_FILES.values():
            path = project.patterns / name
            record = find(RecordText(path.read_bytes()), pattern_id) if path.exists() else None
            if record is not None:
                change = partial(_set_fields, pattern_id, _new_counts(record.value, worked, now))
                rewrite(path, change, merge=merge_records, retry_seconds=_RETRY_SECONDS)
                return


def _new_counts(record: dict[str, Any], worked: bool, now: datetime) -> dict[str, Any]:
    rate_key, count_key = (
        ("failure_rate", "occurrence_count") if "failure_rate" in record else ("success_rate", "usage_count")
    )
    uses = record[count_key]
    good = int(record[rate_key] * uses + 0.5) + worked
    fields = {rate_key: round(good / (uses + 1), 2), count_key: uses + 1, "last_used": iso(now)}
    if "successful_applications" in record:
        fields |= {"successful_applications": good, "failed_applications": uses + 1 - good}
    return fields


def _set_fields(pattern_id: str, fields: dict[str, Any], data: bytes | None) -> bytes | None:
    if data is None:
        return None
    document = RecordText(data)
    record = find(document, pattern_id)
    if record is None:
        return data
    for key, value in fields.items():
        document.set(record.path, key, value)
    return document.encode()
