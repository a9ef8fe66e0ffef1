"""`ralphdeck demo`."""

from __future__ import annotations

from typing import Final

import click

from core.cli.render.output import line, respond
from core.cli.support.options import OfflineCommand, invocation
from core.cli.support.project import now
from tui.cli.dashboard import need_terminal, open_dashboard
from tui.cli.theme_option import THEME, chosen_theme, theme_option

CHECK_SECONDS: Final = 2.0


@click.command(cls=OfflineCommand)
@click.option("--check", is_flag=True, help="Play and watch without a screen, print a report, and exit.")
@click.option("--seconds", type=click.FloatRange(0.1, 3600), metavar="S", help="How long --check plays.  [default: 2]")
@theme_option
def demo(check: bool, seconds: float | None) -> None:
    """Open the dashboard on a sample project in which loops run while you watch.

    It is a temporary copy, removed at the end: try anything.

    \b
    Examples:
      ralphdeck demo
      ralphdeck demo --theme light
      ralphdeck demo --check --json
    """
    if not check and (seconds is not None or invocation().as_json):
        raise click.UsageError("--seconds and --json go with --check")
    if check and click.get_current_context().meta.get(THEME) is not None:
        raise click.UsageError("--theme goes without --check, which has no screen")
    if check:
        _check(CHECK_SECONDS if seconds is None else seconds)
    else:
        _play()


def _check(seconds: float) -> None:
    from core.demo import demo_check

    report = demo_check(seconds)
    text = (
        f"ok: read {report.loops} loops, {report.patterns} patterns and {report.reflections} reflections; "
        f"in {seconds:g} s {report.changed_loops} loops and {report.changed_patterns} patterns changed "
        f"(watching by {report.watch})"
    )
    respond("DemoReport", lambda: line(text), None, report, ok=True)


def _play() -> None:
    need_terminal()
    chosen_theme()
    from core.demo import DemoPlayer, scratch_project

    with scratch_project(now()) as project, DemoPlayer(project):
        open_dashboard(project, cache=False)
