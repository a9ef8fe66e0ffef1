"""Commands `ralphdeck [PATH]`, `ralphdeck demo` and `ralphdeck serve`."""

from __future__ import annotations

import gc
import os
import sys
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from core.base.errors import ProjectNotFound, RalphdeckError, install_hint
from core.base.paths import ProjectPaths, find_project, project_at
from core.base.text import plural, visible
from core.cli.json import setup as setup_json
from core.cli.support.options import (
    NumberRange,
    OfflineCommand,
    WholeNumber,
    invocation,
    project_option,
    readonly_option,
)
from core.cli.support.output import line, print_object, wants_json
from core.cli.support.project import begin_project, guarded, is_readonly, named_project, now
from core.cli.support.signature import find_signature
from tui.cli import THEME, chosen_theme, theme_option

if TYPE_CHECKING:
    from core.project.kept_project import KeptProject
    from core.project.project import Project
    from core.sources.configuration import Configuration

_GARBAGE_THRESHOLDS: Final = (20_000, 5, 2)
"""Thresholds of the three generations. With Python's 10 and 10 for the older ones, the cycles of drawn lines live so
long that memory grows for 15 minutes. The first search for questions is stopped once, for 45 ms at 10,000 loops."""
CHECK_SECONDS: Final = 2.0  # default duration of `demo --check`


@click.command(hidden=True)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@project_option
@readonly_option
@theme_option
def dashboard(path: Path | None) -> None:
    """Open the dashboard on the nearest project at or above PATH.

    In a folder without .aiwg the dashboard waits for the first loop.
    """
    open_dashboard(project_of(path))


@click.command(cls=OfflineCommand)
@click.option("--check", is_flag=True, help="Play and watch without a screen, print a report, and exit.")
@click.option("--seconds", type=NumberRange(0.1, 3600), metavar="S", help="How long --check plays.  [default: 2]")
@theme_option
def demo(check: bool, seconds: float | None) -> None:
    """Open the dashboard on a sample project in which loops run while you watch.

    The sample project is a temporary copy that is removed at the end, so you can try anything. The
    loops run for about nine minutes.

    \b
    Examples:
      ralphdeck demo
      ralphdeck demo --theme light
      ralphdeck demo --check --json
    """
    if not check and (seconds is not None or wants_json()):
        raise click.UsageError("--seconds and --json need --check")
    if check and click.get_current_context().meta.get(THEME) is not None:
        raise click.UsageError("--theme has no effect with --check; leave out one of them")
    if check:
        _check(CHECK_SECONDS if seconds is None else seconds)
        return
    need_terminal()
    chosen_theme()
    from core.cli.demo import DemoPlayer, scratch_project

    with scratch_project(now()) as project, DemoPlayer(project):
        open_dashboard(project, cache=False)


def _check(seconds: float) -> None:
    from core.cli.demo import demo_check

    report = demo_check(seconds)
    changed = f"{plural(report.changed_loops, 'loop')} and {plural(report.changed_patterns, 'pattern')}"
    text = (
        f"ok: read {report.loops} loops, {report.patterns} patterns and {report.reflections} reflections; "
        f"in {seconds:g} s {changed} changed "
        f"(watching by {report.watch})"
    )
    if wants_json():
        print_object(setup_json.DemoReport, report, ok=True)
    else:
        line(text)


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port",
    type=WholeNumber(0, 65535),
    default=8000,
    show_default=True,
    help="Port to listen on; 0 for any free port.",
)
@click.option("--write", is_flag=True, help="Allow decisions in the browser. Default: read-only.")
@project_option
@theme_option
def serve(path: Path | None, port: int, write: bool) -> None:
    """Show the dashboard in a browser on this machine; read-only without --write.

    Each tab is a separate dashboard. The server listens on 127.0.0.1 only, and requires the key in the printed address.
    To use it from another machine, run ssh -L 8000:127.0.0.1:8000 HOST there and open the same address. Stop the server
    with Ctrl+C.

    \b
    Examples:
      ralphdeck serve
      ralphdeck serve --port 8123 --write
    """
    try:
        from tui.serving import serve as serve_command
    except ImportError as error:
        raise RalphdeckError(f"serve needs additional packages; {install_hint('serve')} ({error})") from None
    project = project_of(path)
    theme = chosen_theme()
    options = [*([] if write else ["--readonly"]), *(["--theme", theme] if theme is not None else [])]
    command = [sys.executable, "-P", "-m", "tui", *options, "--project", str(project.project)]
    what = f"{visible(str(project.project))}{'' if write else ', read-only'}"
    title = f"ralphdeck: {visible(project.project.name)}"
    try:
        serve_command(command, port=port, title=title, announce=lambda address: click.echo(f"{what}: {address}"))
    except OSError as error:
        raise RalphdeckError(f"cannot listen on 127.0.0.1:{port}: {os.strerror(error.errno or 0)}") from None


def project_of(path: Path | None) -> ProjectPaths:
    """Find the project: `--project`, or the nearest at or above `path`, or `path`."""
    named = named_project()
    if path is None and named is not None:
        return guarded(project_at(named))
    start = project_at(path or Path())
    try:
        return guarded(find_project(start.project, or_repository=True))
    except ProjectNotFound:
        return guarded(start)


def open_dashboard(project: ProjectPaths, *, cache: bool = True) -> None:
    """Run the dashboard and exit with its code; settings are read only at the start.

    `cache` keeps the index between runs; the temporary copy of the demo needs none.
    """
    need_terminal()
    theme = chosen_theme()
    gc.disable()  # the app enables it when the project is open: nearly everything created until then stays
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    from core.cli.support.user_files import keymap_file, start_logging
    from core.files.user_files import state_file
    from tui.app import run  # loads textual

    start_logging()
    name = str(project.project) if cache else "demo"
    opening = _Opening(project, invocation().by, readonly=is_readonly(), cache=cache)
    code = run(
        opening.project,
        project,
        open_kept=opening.kept,
        state_file=state_file(),
        keymap_file=keymap_file(),
        remembered_as=name,
        is_fresh=not cache,
        theme=theme,
    )
    click.get_current_context().exit(code)


class _Opening:
    """Opens the dashboard's project; used in a thread, without a context of click."""

    def __init__(self, paths: ProjectPaths, by: str | None, *, readonly: bool, cache: bool) -> None:
        self._paths = paths
        self._by = by
        self._readonly = readonly
        self._cache = cache

    @cached_property
    def _configuration(self) -> Configuration:
        from core.sources.configuration import Configuration

        return Configuration.read(self._paths).with_registry(self._paths)

    @property
    def _signer(self) -> str:
        return find_signature(self._by, self._configuration.settings, in_dashboard=True).by

    def kept(self) -> KeptProject | None:
        """Return the project as it was in the last run, if a view is kept."""
        if not self._cache:
            return None
        from core.project.kept_project import KeptProject

        return KeptProject.open(self._paths, self._configuration.settings, self._signer, now)

    def project(self) -> Project:
        from core.project.project import Project  # imports most of the program

        project = Project(
            self._paths,
            self._configuration.settings,
            by=self._signer,
            clock=now,
            cache=self._cache,
            findings=self._configuration.findings,
            readonly=self._readonly,
        )
        project.began = begin_project
        return project


def need_terminal() -> None:
    """Raise `RalphdeckError` without a terminal, except for a dashboard in a browser."""
    in_terminal = all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))
    if not in_terminal and "TEXTUAL_DRIVER" not in os.environ:
        raise RalphdeckError("the dashboard needs a terminal; for scripts see: ralphdeck --help")
