"""The Structs of the JSON output by name, e.g. `objects.PatternList`; declared in `objects.yaml`."""

from __future__ import annotations

from core.cli.json.wire import Wire, find_struct


def __getattr__(name: str) -> type[Wire]:
    try:
        return find_struct(name)
    except KeyError:
        raise AttributeError(name) from None
