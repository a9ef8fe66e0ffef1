"""The dashboard; this module, `serve` and `doctor` alone know the screen, and only when they are called."""

from __future__ import annotations

import difflib
import gc
import os
import sys
from pathlib import Path
from typing import Final

import click

from core.base.errors import ProjectNotFound, RalphdeckError
from core.cli.options import Invocation, project_option, readonly_option, theme_option
from core.cli.project import decider, guarded, is_readonly, named_project, now
from core.cli.userfiles import keymap_file, start_logging, state_file
from core.config.paths import ProjectPaths, find_project, project_at

_THEME: Final = "RALPHDECK_THEME"


@click.command(hidden=True)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@project_option
@readonly_option
@theme_option
def dashboard(path: Path | None) -> None:
    """Open the dashboard on the nearest project at or above PATH.

    A folder without .aiwg is fine: the dashboard waits for the first loop.
    """
    open_dashboard(project_of(path))


def project_of(path: Path | None) -> ProjectPaths:
    """The project that a dashboard is opened on; see `dashboard`."""
    named = named_project()
    if path is None and named is not None:
        return guarded(project_at(named))
    start = project_at(path or Path())
    try:
        return guarded(find_project(start.project))
    except ProjectNotFound:
        return guarded(start)


def open_dashboard(project: ProjectPaths, *, cache: bool = True) -> None:
    """Run the dashboard and exit with its code; the settings are read once, when it starts.

    Args:
        cache: Whether to keep parsed files between runs; a scratch copy has nothing to keep.
    """
    need_terminal()
    theme = chosen_theme()
    gc.disable()  # the app turns it on with the first frame: until then nearly all that is made stays
    from core.project.project import Project
    from core.sources.configuration import Configuration
    from tui.app import run

    start_logging()
    configuration = Configuration.read(project).with_registry(project)
    deck = Project(
        project,
        configuration.settings,
        by=decider(configuration.settings),
        clock=now,
        cache=cache,
        findings=configuration.findings,
        readonly=is_readonly(),
    )
    name = str(project.project) if cache else "demo"
    code = run(
        deck,
        state_file=state_file(),
        keymap_file=keymap_file(),
        remembered_as=name,
        is_fresh=not cache,
        theme=theme,
    )
    click.get_current_context().exit(code)


def chosen_theme() -> str | None:
    """The theme that `--theme` names, else `$RALPHDECK_THEME`; None if neither is set.

    Raises:
        click.UsageError: There is no theme of that name.
    """
    given = click.get_current_context().ensure_object(Invocation).theme
    source, name = ("--theme", given) if given is not None else (_THEME, os.environ.get(_THEME) or None)
    if name is None:
        return None
    from tui.themes import load_themes

    names = list(load_themes())
    if name in names:
        return name
    near = difflib.get_close_matches(name.strip().lower().replace("_", "-"), names, n=1)
    hint = f" Did you mean {near[0]}?" if near else ""
    raise click.UsageError(f"{source}: unknown theme {name!r}.{hint} Themes: {', '.join(names)}")


def need_terminal() -> None:
    """Refuse to draw where nobody could see it or press a key; a browser has a driver of its own."""
    in_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not in_terminal and "TEXTUAL_DRIVER" not in os.environ:
        raise RalphdeckError("the dashboard needs a terminal; for scripts see: ralphdeck --help")
