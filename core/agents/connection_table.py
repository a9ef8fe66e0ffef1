"""What connecting an agent needs, read from `connections.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.agents.agent_table import AGENTS, Moment
from core.base.errors import BadInput


class FilePaths(Struct, frozen=True, kw_only=True):
    """Paths of a file in a project and of the user's one, in the form of `connections.toml`; "" for none."""

    project: str
    user: str


class HookFile(FilePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with the hooks, and the entry of an event."""

    entry: Mapping[str, Any]
    entries: Mapping[str, Mapping[str, Any]] = {}  # of events with another entry
    document: Mapping[str, Any] = {}  # further members of a new file
    trusted_in: str = ""  # TOML file with the hooks that the user trusts; "" if hooks need no trust


class McpFile(FilePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with the MCP servers, the key of the object that holds them, and the entry."""

    key: str
    entry: Mapping[str, Any]
    document: Mapping[str, Any] = {}
    left: str = ""  # what is left for the user once the entry is written
    by_hand: str = ""  # the command for the user's entry, where there is no file to write


class Switch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting of the agent that stops all hooks if it has this value in one of the files."""

    files: Sequence[str]
    key: str  # with dots between the keys of nested objects
    value: bool


class PluginList(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The files that list the plugins of the agent, and the key of the object with them."""

    files: Sequence[str]
    key: str


class Connection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one agent is detected and connected."""

    programs: Sequence[str]
    marks: Sequence[str]
    home: str
    home_variable: str = ""
    instructions: str  # file of the project that the agent reads at the start
    skill: FilePaths | None = None
    hooks: HookFile | None = None
    mcp: McpFile
    runs_hooks_of: str = ""  # agent whose project hooks this agent runs too
    runs_them_if: str = ""  # what the user has to do for that
    answer: Sequence[str] = ()  # keys that the answer to a session start may have
    switches: Sequence[Switch] = ()
    plugin: PluginList | None = None
    left: Sequence[str] = ()  # what is left for the user
    left_in_project: Sequence[str] = ()  # the same, for the files of a project only

    def list_left(self, *, is_global: bool, has_mcp: bool) -> tuple[str, ...]:
        """List what is left for the user; nothing about an MCP server without an entry for it."""
        has_entry = has_mcp and bool(self.mcp.user if is_global else self.mcp.project)
        server = (self.mcp.left,) if has_entry and self.mcp.left else ()
        return (*self.left, *(() if is_global else self.left_in_project), *server)

    def home_folder(self) -> Path:
        """Return the folder with the user's files of the agent."""
        named = os.environ.get(self.home_variable, "") if self.home_variable else ""
        return _expand(named or self.home)

    def resolve(self, path: str, project: Path) -> tuple[Path, Path]:
        """Return the absolute path of a path of the table, and the folder that it must not leave by a link."""
        for prefix, root in (("{home}/", self.home_folder), ("~/", Path.home)):
            if path.startswith(prefix):
                folder = root()
                return folder / path.removeprefix(prefix), folder
        return project / path, project


CONNECTIONS: Final[Mapping[str, Connection]] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("connections.toml").read_text("utf-8")), dict[str, Connection]
)


def start_event(agent: str) -> str:
    """Return the agent's name of the event with which a session starts; "" if it runs no hooks."""
    return next((name for name, moment in AGENTS[agent].events.items() if moment is Moment.START), "")


def fill(entry: Any, **values: str) -> Any:
    """Replace `{name}` in every text of an entry."""
    if isinstance(entry, str):
        for name, value in values.items():
            entry = entry.replace(f"{{{name}}}", value)
        return entry
    if isinstance(entry, Mapping):
        return {key: fill(item, **values) for key, item in entry.items()}
    return [fill(item, **values) for item in entry] if isinstance(entry, list) else entry


def _expand(folder: str) -> Path:
    try:
        return Path(folder).expanduser().absolute()
    except RuntimeError:
        raise BadInput(f"cannot find the home folder for {folder}; set HOME") from None
