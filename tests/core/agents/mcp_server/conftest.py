"""A server for the sample project, and a client of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.agents.mcp_server.tools import Session
from core.base.paths import project_at
from core.base.settings import Settings
from core.cli.demo.sample import sample_anchor
from core.decisions.case import Decided
from core.decisions.commands import Command
from core.files.file_access import release
from core.project.project import Project
from tests.conftest import WriteSample

if TYPE_CHECKING:  # slow to import, and every worker imports this file
    from mcp import Client
    from mcp.types import CallToolResult

CLIENT = "Claude Code"
LOOP = "ralph-add-rate-limiting-to-the-login-d97b384a"
TASK = "Fix TypeScript type errors in user validation"


class Server:
    """A server for one project, with a clock that tests advance."""

    def __init__(self, folder: Path, *, readonly: bool = False) -> None:
        self.now = sample_anchor()
        self.seconds = 0.0
        self.project = Project(
            project_at(folder), Settings(), by="ada", clock=lambda: self.now, cache=False, readonly=readonly
        )
        self.loads = 0
        self.session = Session(self.project, self._load, clock=lambda: self.seconds)

    def _load(self) -> None:
        self.loads += 1
        self.project.load()

    def decide(self, command: Command) -> Decided:
        """Let a person decide."""
        self.project.by = "ada"
        with self.project.curator.signing("ada"):
            return self.project.decide(command)

    def wait(self, **time: float) -> None:
        self.now += timedelta(**time)

    @asynccontextmanager
    async def client(self, name: str = CLIENT, **options: Any) -> AsyncIterator[Agent]:
        """Connect a client."""
        from mcp import Client
        from mcp.types import Implementation

        from core.agents.mcp_server.server import create_server

        info = Implementation(name=name, version="1")
        async with Client(create_server(self.session), client_info=info, **options) as client:
            yield Agent(client, self)


class Agent:
    """A connected client."""

    def __init__(self, client: Client, server: Server) -> None:
        self.client = client
        self._server = server

    async def call(self, name: str, **arguments: Any) -> CallToolResult:
        self._server.seconds += 60  # far from the limit of calls
        from mcp.types import CallToolResult

        found = await self.client.call_tool(name, arguments)
        assert isinstance(found, CallToolResult)
        return found

    async def data(self, name: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool that must succeed, and return its data."""
        found = await self.call(name, **arguments)
        assert not found.is_error, text_of(found)
        data: dict[str, Any] | None = found.structured_content
        assert data is not None
        return data

    async def error(self, name: str, **arguments: Any) -> str:
        """Call a tool that must fail, and return why."""
        found = await self.call(name, **arguments)
        assert found.is_error and found.structured_content is None
        return text_of(found)


def text_of(result: CallToolResult) -> str:
    from mcp.types import TextContent

    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


@pytest.fixture
def folder(tmp_path: Path, write_sample: WriteSample) -> Path:
    write_sample(tmp_path / "shop", sample_anchor())
    return tmp_path / "shop"


@pytest.fixture
def server(folder: Path) -> Server:
    return Server(folder)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, write_sample: WriteSample) -> Server:
    """A server for all tests of a file that change nothing."""
    folder = tmp_path_factory.mktemp("read") / "shop"
    write_sample(folder, sample_anchor())
    return Server(folder)


@pytest.fixture
def readonly_server(folder: Path) -> Iterator[Server]:
    server = Server(folder, readonly=True)
    yield server
    release(server.project.project.aiwg)
