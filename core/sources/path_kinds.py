"""Which files tell of loops, by their place alone (formats 1.1, 1.2, C13)."""

from __future__ import annotations

from typing import Final

LOOPS: Final = "loops"
ARCHIVE: Final = "archive"
REGISTRY: Final = "registry"
CURRENT: Final = "current-loop"
EXTERNAL: Final = "external"
EXTERNAL_ARCHIVE: Final = "external-archive"
EXTERNAL_REGISTRY: Final = "external-registry"
EXTERNAL_STATE: Final = "external-state"
LAUNCHER: Final = "launcher"
HEARTBEAT: Final = "heartbeat"
CRASH_LOG: Final = "crash-log"
ANALYTICS: Final = "analytics"
BEST_OUTPUT: Final = "best-output"
DIRECTORY: Final = "directory"
DETAILS: Final = frozenset({ANALYTICS, BEST_OUTPUT, HEARTBEAT, CRASH_LOG, DIRECTORY})
"""Kinds of facts that only add to a loop that other files know."""

_HOMES: Final = {
    ("ralph", "loops"): LOOPS,
    ("ralph", "archive"): ARCHIVE,
    ("ralph-external", "loops"): EXTERNAL,
    ("ralph-external", "archive"): EXTERNAL_ARCHIVE,
}
_TOP_FILES: Final = {
    ("ralph", "registry.json"): REGISTRY,
    ("ralph", "current-loop.json"): CURRENT,
    ("ralph", "loop-state.json"): CURRENT,
    ("ralph-external", "registry.json"): EXTERNAL_REGISTRY,
    ("ralph-external", "session-state.json"): EXTERNAL_STATE,
    ("ralph-external", "launcher-registry.json"): LAUNCHER,
}


def loop_source(file: str) -> str:
    """Which kind of loop file a project-relative path is: a constant of this module, or "" for none."""
    match file.split("/"):
        case [".aiwg", tree, name]:
            return _TOP_FILES.get((tree, name), "")
        case [".aiwg", tree, home, _, name] if source := _HOMES.get((tree, home)):
            if name == ("state.json" if tree == "ralph" else "session-state.json"):
                return source
            return {"crash.log": CRASH_LOG, "best-output-tracking.json": BEST_OUTPUT}.get(name, "")
        case [".aiwg", tree, home, _, "analytics", name] if (tree, home) in _HOMES:
            return ANALYTICS if name.endswith(".json") else ""
        case [".aiwg", "ralph" | "ralph-external", "analytics", name] if name.endswith(".json"):
            return ANALYTICS
        case [".aiwg", "ralph", "heartbeats", name] if name.endswith(".json"):
            return HEARTBEAT
        case [".aiwg", "ralph", _, "best-output-tracking.json"]:
            return BEST_OUTPUT
    return ""


def loop_directory(file: str) -> str:
    """The loop directory (in `loops/` or `archive/` of either tree) that a path lies in, or ""."""
    parts = file.split("/", 4)
    if len(parts) < 4 or parts[0] != ".aiwg" or (parts[1], parts[2]) not in _HOMES or not parts[3]:
        return ""
    return "/".join(parts[:4])


def loop_home(directory: str) -> str:
    """`LOOPS`, `ARCHIVE`, `EXTERNAL` or `EXTERNAL_ARCHIVE` for what `loop_directory` gives; else ""."""
    parts = directory.split("/", 3)
    return _HOMES.get((parts[1], parts[2]), "") if len(parts) == 4 else ""
