"""`ralphdeck [PATH]`: the dashboard."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import click

from core.base.errors import ProjectNotFound, RalphdeckError
from core.cli.support.options import project_option, readonly_option
from core.cli.support.project import decider, guarded, is_readonly, named_project, now
from core.cli.support.user_files import keymap_file, start_logging, state_file
from core.config.paths import ProjectPaths, find_project, project_at
from tui.cli.theme_option import chosen_theme, theme_option


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
    """Find the project for a dashboard: the named one, else the nearest at or above a folder, else that folder."""
    named = named_project()
    if path is None and named is not None:
        return guarded(project_at(named))
    start = project_at(path or Path())
    try:
        return guarded(find_project(start.project))
    except ProjectNotFound:
        return guarded(start)


def open_dashboard(project: ProjectPaths, *, cache: bool = True) -> None:
    """Run the dashboard and exit with its code. The settings are read once, at the start.

    Args:
        cache: Whether to cache parsed files between runs; useless for a temporary copy.
    """
    need_terminal()
    theme = chosen_theme()
    gc.disable()  # the app enables it with the first frame: nearly everything created until then stays
    from core.project.project import Project
    from core.sources.configuration import Configuration
    from tui.app import run  # loads textual

    start_logging()
    configuration = Configuration.read(project).with_registry(project)
    opened = Project(
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
        opened, state_file=state_file(), keymap_file=keymap_file(), remembered_as=name, is_fresh=not cache, theme=theme
    )
    click.get_current_context().exit(code)


def need_terminal() -> None:
    """Raise an error unless stdin and stderr are a terminal; a browser has a driver of its own."""
    in_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not in_terminal and "TEXTUAL_DRIVER" not in os.environ:
        raise RalphdeckError("the dashboard needs a terminal; for scripts see: ralphdeck --help")
