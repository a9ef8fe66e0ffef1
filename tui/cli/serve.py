"""`ralphdeck serve`."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import click

from core.base.errors import RalphdeckError
from core.base.text import visible
from core.cli.support.options import project_option
from tui.cli.dashboard import project_of
from tui.cli.theme_option import chosen_theme, theme_option


@click.command()
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Where to listen; 0: any free port."
)
@click.option("--write", is_flag=True, help="Allow decisions in the browser. Default: read-only.")
@project_option
@theme_option
def serve(path: Path | None, port: int, write: bool) -> None:
    """Show the dashboard in a browser on this machine, one dashboard a tab; read-only without --write.

    Listens on 127.0.0.1 only, and requires the key in the printed address. From another machine:
    ssh -L 8000:127.0.0.1:8000 HOST, then open the same address. Stop it with Ctrl+C.

    \b
    Examples:
      ralphdeck serve
      ralphdeck serve --port 8123 --write
    """
    try:
        from tui.serving import serve as serve_command
    except ImportError as error:
        raise RalphdeckError(f"serve needs more packages: pip install 'ralphdeck[serve]' ({error})") from None
    project = project_of(path)
    theme = chosen_theme()
    options = [*([] if write else ["--readonly"]), *(["--theme", theme] if theme is not None else [])]
    command = [sys.executable, "-P", "-m", "tui", *options, "--project", str(project.project)]
    what = f"{visible(str(project.project))}{'' if write else ', read-only'}"
    try:
        serve_command(command, port=port or _free_port(), announce=lambda address: click.echo(f"{what}: {address}"))
    except OSError as error:
        raise RalphdeckError(f"cannot listen on 127.0.0.1:{port}: {error.strerror}") from None


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])
