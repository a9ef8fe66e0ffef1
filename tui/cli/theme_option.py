"""Option `--theme` of the commands that open a dashboard."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

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
    from tui.kit.themes import load_themes  # loads textual

    names = list(load_themes())
    if name in names:
        return name
    import difflib

    near = difflib.get_close_matches(name.strip().lower().replace("_", "-"), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise click.UsageError(f"{source}: unknown theme {name!r}.{hint} Themes: {', '.join(names)}")
