"""Append to the event log `shared/curation/events.jsonl` (docs/file-formats.md#event-log)."""

from __future__ import annotations

import msgspec

from core.base.errors import BadInput, Unwritable
from core.config.paths import ProjectPaths
from core.records.events import Event
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_PATTERN_BYTES


def append_events(paths: ProjectPaths, *events: Event) -> None:
    """Append events, all or none; they are durable on return.

    Raises:
        BadInput: A text is not valid Unicode (a lone surrogate).
        Unwritable: The log cannot be written, or is outside the project; it is unchanged.
    """
    try:
        file = paths.inside(paths.relative(paths.events))
        if file.is_file() and file.stat().st_size > MAX_PATTERN_BYTES:
            raise Unwritable(f"{paths.events} has more than {MAX_PATTERN_BYTES:,} bytes, the maximum that is read")
        lines = [msgspec.json.encode(event) for event in events]
    except UnicodeEncodeError:
        raise BadInput("a text of the event is not valid Unicode") from None
    except BadInput as error:
        raise Unwritable(str(error)) from None
    AppendLog(paths.events).append(lines)
