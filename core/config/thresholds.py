"""The settings that `what-if` can change: lookup by name, and values given as text."""

from __future__ import annotations

import difflib
from typing import Final

from core.base.errors import BadInput
from core.base.validation import format_value
from core.config.declaration import Setting
from core.config.settings import SETTINGS, Settings

_NAME_CHARS: Final = 80
"""Longest name that is compared with known names."""
_GROUPS: Final = ("maturity", "anti_pattern", "learning")

THRESHOLDS: Final = tuple(
    sorted(
        (setting for setting in SETTINGS.values() if setting.group in _GROUPS and setting.kind is not str),
        key=lambda setting: (not setting.replayed, _GROUPS.index(setting.group)),
    )
)
"""All thresholds; settings that change states and inversions come first."""


def find_threshold(name: str) -> Setting:
    """Threshold with a name; the field alone suffices where only one group has it.

    Raises:
        BadInput: No threshold matches, or several do.
    """
    found = [known for known in THRESHOLDS if name in (known.name, known.field)]
    if len(found) == 1:
        return found[0]
    if found:
        raise BadInput(f"{name} is ambiguous; use {' or '.join(known.name for known in found)}")
    names = {word: known.name for known in THRESHOLDS for word in (known.field, known.name)}
    near = dict.fromkeys(names[word] for word in difflib.get_close_matches(name[:_NAME_CHARS], names))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"no threshold {format_value(name)}{hint}")


def with_threshold(settings: Settings, name: str, text: str) -> Settings:
    """`settings` with another value of one threshold.

    Raises:
        BadInput: The threshold is unknown or the text is not a valid value.
    """
    setting = find_threshold(name)
    changed: Settings = setting.with_value(settings, setting.parse(text))
    return changed
