"""`ralphdeck mcp`: serve a project to agents over the Model Context Protocol."""

from __future__ import annotations

import os
from functools import partial
from importlib.util import find_spec

import click

from core.base.errors import RalphdeckError, install_hint
from core.cli.support.options import Command, readonly_option
from core.cli.support.project import (
    create_project,
    is_readonly,
    load_project,
    read_configuration,
    require_records,
)


class _ServerCommand(Command):
    """A command that runs until its client ends it, and prints nothing itself."""

    standard = ("--project",)


@click.command(cls=_ServerCommand)
@readonly_option
def mcp() -> None:
    """Serve a project over the Model Context Protocol (MCP), on stdin and stdout.

    An agent starts this command; see docs/agents.md. It has eight tools: context for a task, known fixes, search in the
    patterns, past attempts, loops, and reports that a person reviews. None of them decides anything. The project is
    chosen at the start and must have a folder .aiwg. With --readonly, nothing is recorded, and the tools that report
    are not listed. Needs the extra `mcp`.

    \b
    Examples:
      ralphdeck mcp
      ralphdeck mcp --project ~/shop --readonly
    """
    require_records()
    if find_spec("mcp") is None:
        raise RalphdeckError(f"mcp needs additional packages; {install_hint('mcp')}")
    from core.agents.mcp_server.handshake import end_at_signals, open_relay

    relay = open_relay(is_readonly=is_readonly())
    end_at_signals(relay)
    relay.start()  # before the imports, which take longer than agents wait
    from core.agents.mcp_server.server import serve
    from core.agents.mcp_server.tools import Session

    project = create_project(read_configuration(), records=True, asks=False)
    serve(Session(project, partial(load_project, project)), relay)
    project.adapters.close()
    os._exit(0)  # a thread may still wait for the client, which the end of the interpreter does not survive
