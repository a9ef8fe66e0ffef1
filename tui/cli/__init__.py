"""The program `ralphdeck`: headless commands of `core.cli`, and the dashboard.

Importing this module does not import textual, so `ralphdeck --help` and the headless commands start fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, TypeVar

import click

from core.cli import program
from core.cli.command_table import Place
from core.cli.program import Program

THEME: Final = "tui.theme"  # key of the chosen theme in the metadata of the click context
_VARIABLE: Final = "RALPHDECK_THEME"

Decorated = TypeVar("Decorated", bound=Callable[..., Any] | click.Command)


def _store_theme(ctx: click.Context, param: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.meta[THEME] = value


def theme_option(command: Decorated) -> Decorated:
    """Add the option `--theme NAME` to a command or group."""
    return click.option(
        "--theme",
        metavar="NAME",
        expose_value=False,
        callback=_store_theme,
        help="Colour theme of the dashboard for this run, e.g. dark, light or ansi. Default: $RALPHDECK_THEME, or "
        "the theme last chosen with T.",
    )(command)


def chosen_theme() -> str | None:
    """Return the theme of `--theme` or `$RALPHDECK_THEME`; None if neither is set.

    Raises `click.UsageError` for an unknown theme."""
    given: str | None = click.get_current_context().meta.get(THEME)
    source, name = ("--theme", given) if given is not None else (_VARIABLE, os.environ.get(_VARIABLE) or None)
    if name is None:
        return None
    from tui.kit.looks import load_themes  # loads textual

    names = list(load_themes())
    if name in names:
        return name
    import difflib

    near = difflib.get_close_matches(name.strip().lower().replace("_", "-"), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise click.UsageError(f"{source}: unknown theme {name!r}.{hint} Themes: {', '.join(names)}")


_WITH_SCREEN: Final = frozenset({None, "dashboard", "demo", "serve"})
"""The commands that open a dashboard; None is the call without a command."""


class DashboardProgram(Program):
    """The program including the dashboard; `ralphdeck PATH` opens it on a project."""

    default: ClassVar[str] = "dashboard"
    extra: ClassVar[Mapping[str, Mapping[str, Place]]] = {
        "Core": {
            "dashboard": Place("tui.cli.dashboard:dashboard", ""),
            "demo": Place("tui.cli.dashboard:demo", "Open the dashboard on a sample project in which loops run."),
            "serve": Place("tui.cli.dashboard:serve", "Show the dashboard in a browser on this machine."),
        }
    }

    def keymap_problems(self, path: os.PathLike[str]) -> list[str]:
        """Return a message for each invalid line of a keymap file."""
        from tui.kit.actions import load_keymap  # loads textual

        return list(load_keymap(Path(path))[1])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; raises `click.UsageError` for --theme without a dashboard."""
        name, command, rest = super().resolve_command(ctx, args)
        if name not in _WITH_SCREEN and ctx.meta.get(THEME) is not None:
            raise click.UsageError(f"--theme works only with the dashboard, demo and serve, not with {name}", ctx)
        return name, command, rest


_SUMMARY: Final = (
    "Without a command: open the dashboard on the nearest project at or above PATH (default: current folder)."
)
cli: Final = theme_option(program.create_program(DashboardProgram, _SUMMARY, "[PATH] | COMMAND [ARGS]..."))


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    program.main(args, cli)


def run(args: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    return program.run(args, cli)
