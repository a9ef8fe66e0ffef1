"""Groups of commands that are imported only when they are called, so that `--help` stays fast."""

from __future__ import annotations

import difflib
import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import ClassVar, Final

import click
from click.shell_completion import CompletionItem

from core.cli.command_table import COMMANDS, SECTIONS, GroupPlace, Place, translate_alias
from core.cli.support.options import project_option

BROKEN_PIPE_EXIT: Final = 141
"""Exit code of a shell for a program that SIGPIPE ended."""


class CommandGroup(click.Group):
    """A group that knows its commands by their places.

    Args:
        place: The commands, their lines of help and their former names.
    """

    def __init__(self, name: str, place: GroupPlace) -> None:
        super().__init__(name, help=inspect.cleandoc(place.details), invoke_without_command=bool(place.default))
        self.place: Final = place
        project_option(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        names = (*self.place.commands, *self.place.aliases)
        help_options = self.get_help_option_names(ctx)
        if self.place.default and not any(word in names or word in help_options for word in args):
            args = [self.place.default, *args]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.place.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name, or former name."""
        place = self.place.commands.get(self.place.aliases.get(cmd_name, cmd_name))
        return load(place.target) if place is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names.

        Raises:
            click.UsageError: There is no such command.
        """
        word = args[0]
        if word not in self.place.commands and word not in self.place.aliases and not word.startswith("-"):
            raise unknown_command(word, self.place.commands, ctx)
        _, command, rest = super().resolve_command(ctx, args)
        return self.place.aliases.get(word, word), command, rest

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table of commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self.place.commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, and of options after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return completions(self.place.commands, incomplete)


class Program(click.Group):
    """The headless program. A package with a screen adds its commands by a subclass.

    Attributes:
        extra: Further commands by section.
        default: Command that runs without a word, or with a path as the first word; "" for none.
    """

    extra: ClassVar[Mapping[str, Mapping[str, Place]]] = {}
    default: ClassVar[str] = ""

    @property
    def sections(self) -> dict[str, dict[str, Place | GroupPlace]]:
        """All commands by section."""
        return {title: {**self.extra.get(title, {}), **commands} for title, commands in SECTIONS.items()}

    @property
    def places(self) -> dict[str, Place | GroupPlace]:
        """All commands by name."""
        return {name: place for commands in self.sections.values() for name, place in commands.items()}

    def keymap_problems(self, path: os.PathLike[str]) -> list[str]:
        """What is wrong in the file of keys; without a screen no key has a meaning."""
        return []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with quiet_broken_pipe():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with quiet_broken_pipe():
            return super().invoke(ctx)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command with this name."""
        place = self.places.get(cmd_name)
        if isinstance(place, GroupPlace):
            return CommandGroup(cmd_name, place)
        return load(place.target) if place is not None else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first word names, or the default command if it is a path.

        Raises:
            click.UsageError: It is neither.
        """
        args = translate_alias(args)
        word = args[0]
        if word in self.places:
            return super().resolve_command(ctx, args)
        if self.default and (os.path.lexists(word) or os.sep in word or word.startswith(("~", "."))):
            return self.default, self.get_command(ctx, self.default), args
        raise unknown_command(word, all_spellings(self.places), ctx, path=bool(self.default))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a table of commands for each section."""
        width = max(map(len, self.places))
        for title, commands in self.sections.items():
            rows = [(f"{name:<{width}}", place.help) for name, place in commands.items() if place.help]
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands, and of options after a dash; else a folder."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        return completions(self.places, incomplete) or [CompletionItem(incomplete, type="dir")]


def load(target: str) -> click.Command:
    """Import the command at `module:name`."""
    module, _, name = target.partition(":")
    command = getattr(import_module(module if "." in module else f"{COMMANDS}.{module}"), name)
    assert isinstance(command, click.Command)
    return command


def completions(places: Mapping[str, Place | GroupPlace], incomplete: str) -> list[CompletionItem]:
    """The listed commands that begin with a text."""
    return [
        CompletionItem(name, help=place.help)
        for name, place in places.items()
        if place.help and name.startswith(incomplete)
    ]


def all_spellings(places: Mapping[str, Place | GroupPlace]) -> dict[str, str]:
    """Each command line by every word that may be meant by it: `loop list` by `loop`, `loops` and `list`."""
    found: dict[str, str] = {}
    for name, place in places.items():
        found[name] = name
        for inner in place.commands if isinstance(place, GroupPlace) else ():
            found.setdefault(inner, f"{name} {inner}")
    return found


def unknown_command(
    word: str, known: Mapping[str, object], ctx: click.Context, *, path: bool = False
) -> click.UsageError:
    """The error for a word that is not a command, with the nearest ones."""
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    names = [value if isinstance(value := known[name], str) else name for name in near]
    if word in {"list", "show"}:
        names = [f"{group} {word}" for group in ("pattern", "loop", "task") if f"{group} {word}" != "loop show"]
    hint = f" Did you mean {' or '.join(names)}?" if names else ""
    return click.UsageError(f"{word!r} is not a command{' or a folder' if path else ''}.{hint}", ctx)


@contextmanager
def quiet_broken_pipe() -> Iterator[None]:
    """Exit quietly when the reader of a pipe has closed it; click would report a failure."""
    try:
        yield
    except BrokenPipeError:
        discard_stream(1)
        discard_stream(2)
        raise click.exceptions.Exit(BROKEN_PIPE_EXIT) from None


def discard_stream(descriptor: int) -> None:
    """Redirect file descriptor 1 or 2 to /dev/null, so that Python does not retry the write at exit."""
    try:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
    except OSError:
        pass
