"""Groups of commands that are loaded when they are called."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyCommands(click.Group):
    """A group that knows some of its commands by their place alone, so that its help loads none of them.

    Args:
        places: (module:name, one line of help) by the name of the command.
    """

    def __init__(self, *args: Any, places: Mapping[str, tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self._places = places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, those that are loaded already first."""
        return [*self.commands, *self._places]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, imported now."""
        place = self._places.get(cmd_name)
        return super().get_command(ctx, cmd_name) if place is None else load(place[0])

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        rows = [(name, command.get_short_help_str(100)) for name, command in self.commands.items()]
        with formatter.section("Commands"):
            formatter.write_dl([*rows, *((name, text) for name, (_, text) in self._places.items())])


def load(place: str) -> click.Command:
    """The command at `module:name`."""
    module, _, name = place.partition(":")
    command = getattr(import_module(module), name)
    assert isinstance(command, click.Command)
    return command
