"""Command names of other tools that are accepted for commands of ralphdeck, with all their options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

ALIASES: Final = {
    "ralph-extract-patterns": "extract",
    "ralph-inject-patterns": "inject",
    "ralph-patterns": "patterns",
    "ralph-history": "history",
    "ralph-replay": "replay",
    "ralph-search": "search",
}
"""The command behind each alias; aliases are not listed by --help."""
TASK_ALIAS: Final = "ralph"
"""With a task behind it: the context that a loop with this task gets."""
_OPTIONS: Final = {"--min-pattern-success-rate": "--min-success-rate"}
"""Options of `TASK_ALIAS` by the name that `inject` has for them."""


def translate_alias(args: Sequence[str]) -> list[str]:
    """The words of a command line with an alias replaced; the same words where the first one is none."""
    name, *rest = args
    if name in ALIASES:
        return [ALIASES[name], *rest]
    if name == TASK_ALIAS and rest:
        task = [] if rest[0].startswith("-") else ["--task"]
        return ["inject", *task, *map(_renamed, rest)]
    return list(args)


def _renamed(word: str) -> str:
    option, equals, value = word.partition("=")
    return f"{_OPTIONS[option]}{equals}{value}" if option in _OPTIONS else word
