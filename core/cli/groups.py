"""Groups whose commands are only imported when called, so that `--help` is fast."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import ClassVar, Final

import click
from click.shell_completion import CompletionItem

from core.cli.command_table import COMMANDS, SECTIONS, GroupPlace, Place, translate_alias
from core.cli.support.options import project_option

BROKEN_PIPE_EXIT: Final = 141  # Exit code that a shell reports for a program ended by SIGPIPE.


class _LazyGroup(click.Group):
    """A group that imports a command from its place in the command table."""

    @property
    def places(self) -> Mapping[str, Place | GroupPlace]:
        raise NotImplementedError

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = self.places.get(cmd_name)
        if isinstance(place, GroupPlace):
            return CommandGroup(cmd_name, place)
        return load(place.target) if place is not None else None

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of listed commands, and options after a dash."""
        if incomplete.startswith("-"):
            return click.Command.shell_complete(self, ctx, incomplete)
        found = {name: place.help for name, place in self.places.items() if place.help and name.startswith(incomplete)}
        return [CompletionItem(name, help=help) for name, help in found.items()]


class CommandGroup(_LazyGroup):
    """A group of commands."""

    def __init__(self, name: str, place: GroupPlace) -> None:
        super().__init__(name, help=place.details)
        self.place: Final = place
        project_option(self)

    @property
    def places(self) -> Mapping[str, Place]:
        return self.place.commands

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command by the first word; raises UsageError if there is none."""
        if args[0] not in self.places and not args[0].startswith("-"):
            raise unknown_command(args[0], self.places, ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.help) for name, place in self.places.items()])


class Program(_LazyGroup):
    """The headless program; a user interface adds its commands in a subclass."""

    extra: ClassVar[Mapping[str, Mapping[str, Place]]] = {}  # Further commands by section.
    default: ClassVar[str] = ""  # Command that runs if the first word is missing or a path; "" for none.

    @property
    def sections(self) -> dict[str, dict[str, Place | GroupPlace]]:
        return {title: {**self.extra.get(title, {}), **commands} for title, commands in SECTIONS.items()}

    @property
    def places(self) -> dict[str, Place | GroupPlace]:
        return {name: place for commands in self.sections.values() for name, place in commands.items()}

    def keymap_problems(self, path: os.PathLike[str]) -> list[str]:
        """List the problems of the keymap file; none here, where no keys are used."""
        return []

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        with quiet_broken_pipe():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        with quiet_broken_pipe():
            return super().invoke(ctx)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the named command, or the default one for a path; may raise UsageError."""
        args = translate_alias(args)
        word = args[0]
        if word in self.places:
            return super().resolve_command(ctx, args)
        if self.default and (os.path.lexists(word) or os.sep in word or word.startswith(("~", "."))):
            return self.default, self.get_command(ctx, self.default), args
        raise unknown_command(word, all_spellings(self.places), ctx, path=bool(self.default))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.places))
        for title, commands in self.sections.items():
            rows = [(f"{name:<{width}}", place.help) for name, place in commands.items() if place.help]
            with formatter.section(title):
                formatter.write_dl(rows)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands, options after a dash, or else folders."""
        found = super().shell_complete(ctx, incomplete)
        return found if found or incomplete.startswith("-") else [CompletionItem(incomplete, type="dir")]


def load(target: str) -> click.Command:
    """Import the command at `module:name`."""
    module, _, name = target.partition(":")
    command = getattr(import_module(module if "." in module else f"{COMMANDS}.{module}"), name)
    assert isinstance(command, click.Command)
    return command


def all_spellings(places: Mapping[str, Place | GroupPlace]) -> dict[str, str]:
    """Map each word to the command line that it may mean: `list` to `loop list`."""
    found: dict[str, str] = {}
    for name, place in places.items():
        found[name] = name
        for inner in place.commands if isinstance(place, GroupPlace) else ():
            found.setdefault(inner, f"{name} {inner}")
    return found


def unknown_command(
    word: str, known: Mapping[str, object], ctx: click.Context, *, path: bool = False
) -> click.UsageError:
    """Make the error for an unknown command, with similar commands."""
    import difflib  # only needed here

    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    names = [value if isinstance(value := known[name], str) else name for name in near]
    if word in {"list", "show"} and word in known:
        names = [f"{group} {word}" for group in ("pattern", "loop", "task")]
    hint = f" Did you mean {' or '.join(names)}?" if names else ""
    return click.UsageError(f"{word!r} is not a command{' or a folder' if path else ''}.{hint}", ctx)


@contextmanager
def quiet_broken_pipe() -> Iterator[None]:
    """Exit quietly if the reader closed the pipe; click would report a failure."""
    try:
        yield
    except BrokenPipeError:
        discard_stream(1)
        discard_stream(2)
        raise click.exceptions.Exit(BROKEN_PIPE_EXIT) from None


def discard_stream(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null, so that Python does not retry at exit."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, descriptor)
        os.close(null)
