"""Adding to the event log `shared/curation/events.jsonl` (semantics 1, source 1)."""

from __future__ import annotations

import msgspec

from core.errors import BadInput, Unwritable
from core.paths import ProjectPaths
from core.records.events import Event
from core.sources.journal import Journal


def append_event(paths: ProjectPaths, event: Event) -> None:
    """Write one event down; it is durable on return.

    Raises:
        BadInput: A text of it cannot be stored: it holds half a character (a lone surrogate).
        Unwritable: The log cannot be written, or lies outside the project; it is as it was.
    """
    try:
        paths.inside(paths.relative(paths.events))
        line = msgspec.json.encode(event)
    except UnicodeEncodeError:
        raise BadInput("an id of the event is no valid text") from None
    except BadInput as error:
        raise Unwritable(str(error)) from None
    Journal(paths.events).append([line])
