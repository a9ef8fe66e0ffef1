"""`ralphdeck mcp`: serve a project to agents over the Model Context Protocol."""

from __future__ import annotations

from functools import partial

import click

from core.base.errors import RalphdeckError
from core.cli.support.options import Command, readonly_option
from core.cli.support.project import create_project, load_project, read_configuration


class _ServerCommand(Command):
    """A command that runs until its client ends it, and prints nothing itself."""

    standard = ("--project",)


@click.command(cls=_ServerCommand)
@readonly_option
def mcp() -> None:
    """Serve a project to an agent over the Model Context Protocol (MCP), on stdin and stdout.

    An agent starts this command; see docs/agents.md. It has eight tools: context for a task, known fixes, search in the
    patterns, past attempts, loops, and reports that a person reviews. None of them decides anything. The project is
    chosen at the start and must have a folder .aiwg. With --readonly, nothing is recorded, and the tools that report
    are not listed. Needs the extra `mcp`.

    \b
    Examples:
      ralphdeck mcp
      ralphdeck mcp --project ~/shop --readonly
    """
    from core.mcp_server.session import Session

    try:
        from core.mcp_server.server import create_server
    except ImportError as error:
        raise RalphdeckError(f"mcp needs additional packages. Run: pip install 'ralphdeck[mcp]' ({error})") from None

    project = create_project(read_configuration(), records=True, asks=False)
    create_server(Session(project, partial(load_project, project))).run()
