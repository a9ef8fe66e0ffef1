"""Table of commands: where each is implemented, its help, and former spellings."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final, NamedTuple

COMMANDS: Final = "core.cli.commands"


class Place(NamedTuple):
    """Location of a command's implementation, and its line of help."""

    target: str
    help: str


class GroupPlace(NamedTuple):
    """Group of commands with its help texts; `aliases` maps old names to new ones."""

    help: str
    details: str
    commands: dict[str, Place]
    aliases: dict[str, str]
    default: str


def _parse_place(entry: Any) -> Place | GroupPlace:
    if isinstance(entry, list):
        return Place(*entry)
    commands = {name: Place(*command) for name, command in entry["commands"].items()}
    return GroupPlace(entry["help"], entry["details"], commands, entry.get("aliases", {}), entry.get("default", ""))


# In TOML, since YAML takes longer to import than `--help` may take.
_TABLE: Final[dict[str, dict[str, Any]]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))

PROGRAM_HELP: Final[dict[str, str]] = _TABLE["program"]  # The examples and the end of `--help`.
SECTIONS: Final[dict[str, dict[str, Place | GroupPlace]]] = {
    title: {name: _parse_place(entry) for name, entry in commands.items()}
    for title, commands in _TABLE["sections"].items()
}
"""The commands as `--help` lists them."""
ALIASES: Final[dict[str, list[str]]] = {name: words.split() for name, words in _TABLE["aliases"].items()}
"""Former spellings by the command lines that replace them."""
PROGRAM_ALIASES: Final[dict[str, list[str]]] = {
    name: words.split() for name, words in _TABLE["program_aliases"].items()
}
"""Names of other programs by the command lines that replace them."""
TASK_ALIAS: Final = "ralph"  # Followed by a task: prints the context for it, like `loop inject --task`.


def translate_alias(args: list[str]) -> list[str]:
    """Replace an alias at the start of a command line."""
    name, *rest = args
    if name == TASK_ALIAS and rest:
        renamed = [re.sub("^--min-pattern-success-rate(?==|$)", "--min-success-rate", word) for word in rest]
        return ["loop", "inject", *([] if rest[0].startswith("-") else ["--task"]), *renamed]
    return [*(ALIASES.get(name) or PROGRAM_ALIASES.get(name) or [name]), *rest]
