"""Adding to the event log `shared/curation/events.jsonl` (semantics 1, source 1)."""

from __future__ import annotations

import msgspec

from core.base.errors import BadInput, Unwritable
from core.config.paths import ProjectPaths
from core.records.events import Event
from core.storage.append_log import AppendLog
from core.storage.file_reader import MAX_PATTERN_BYTES


def append_events(paths: ProjectPaths, *events: Event) -> None:
    """Write events down, all or none; they are durable on return.

    Raises:
        BadInput: A text of one cannot be stored: it holds half a character (a lone surrogate).
        Unwritable: The log cannot be written, or lies outside the project; it is as it was.
    """
    try:
        file = paths.inside(paths.relative(paths.events))
        if file.is_file() and file.stat().st_size > MAX_PATTERN_BYTES:
            raise Unwritable(f"{paths.events} has more than {MAX_PATTERN_BYTES:,} bytes: it would not be read again")
        lines = [msgspec.json.encode(event) for event in events]
    except UnicodeEncodeError:
        raise BadInput("a text of the event is no valid Unicode") from None
    except BadInput as error:
        raise Unwritable(str(error)) from None
    AppendLog(paths.events).append(lines)
