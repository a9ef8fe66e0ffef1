"""Format the change of an edit or write action as a unified diff."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from core.base.text import plural
from core.files.file_reader import decode_json
from core.sources import normalize

if TYPE_CHECKING:
    from core.records.episodes import Action

MAX_COMPARED: Final = 400  # maximum number of lines that are compared; new files need no comparison
MAX_LINES: Final = 200  # maximum number of lines of a diff, besides a line with the number of omitted ones
_OLD_AND_NEW: Final = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
)
_DIFFS: Final = ("diff", "patch")
_CONTENTS: Final = ("content", "file_text", "contents", "new_source")
_EDITS: Final = "edits"  # parameter with a list of old and new texts, of tools that change several places
DIFF_PARAMS: Final = frozenset({*_DIFFS, *_CONTENTS, _EDITS, *(name for names in _OLD_AND_NEW for name in names)})
"""Names of parameters that `build_diff` uses."""
_WRITING: Final = frozenset({"write", "edit", "create"})  # action types and tool names whose content replaces a file


def build_diff(action: Action) -> tuple[str, ...]:
    """Return the lines of a unified diff; empty if the action changes nothing.

    If the output of the action is a diff, it is that, see `has_diff_output`.

    The diff shows the intended change, even if the action failed. The old content of a file that was written as a whole
    is unknown, so all of its lines count as added.
    """
    is_own = has_diff_output(action)
    lines = tuple(action.output.splitlines() if is_own else _lines(dict(action.params), action))
    omitted = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], f"… {plural(omitted, 'more line')}") if omitted > 0 else lines


def has_diff_output(action: Action) -> bool:
    """Return whether the output of an action is the diff of its change."""
    return action.output.startswith("--- ") and "\n@@ -" in action.output


def _lines(params: Mapping[str, str], action: Action) -> Iterator[str]:
    diff = action.param(*_DIFFS)
    if diff:
        yield from diff.splitlines()
        return
    changes = [(params[old], params[new]) for old, new in _OLD_AND_NEW if old in params and new in params][:1]
    changes += _edits(params.get(_EDITS, ""))
    writes = not _WRITING.isdisjoint((normalize.word(action.type), normalize.word(action.tool)))
    if not changes and writes and (content := action.param(*_CONTENTS)):
        changes.append(("", content))
    if not changes:
        return
    yield f"--- {action.target}"
    yield f"+++ {action.target}"
    for old, new in changes:
        yield from _compare(old.splitlines(), new.splitlines())


def _compare(old: list[str], new: list[str]) -> Iterator[str]:
    if not old and new:
        yield f"@@ -0,0 +1{f',{len(new)}' if len(new) > 1 else ''} @@"
        yield from (f"+{line}" for line in new)
        return
    yield from islice(difflib.unified_diff(old[:MAX_COMPARED], new[:MAX_COMPARED], lineterm=""), 2, None)
    if (more := max(len(old), len(new)) - MAX_COMPARED) > 0:
        yield f"… {plural(more, 'more line')} not compared"


def _edits(text: str) -> list[tuple[str, str]]:
    found: Any = decode_json(text.encode("utf-8", "replace")).value if text else None
    edits = [edit for edit in found if isinstance(edit, dict)] if isinstance(found, list) else []
    return [
        (normalize.text(edit[old]), normalize.text(edit[new]))
        for edit in edits[:MAX_COMPARED]
        for old, new in _OLD_AND_NEW
        if old in edit and new in edit
    ]
