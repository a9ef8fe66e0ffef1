"""Files that agents add to their context by themselves (docs/adapters.md#agents-own-files)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.redaction.masking import mask_secrets

if TYPE_CHECKING:
    from core.adapters.folders import Folders
    from core.adapters.runner_files import RunnerFiles

MAX_BYTES: Final = 1 << 18  # most bytes of one file that are read
_NOT_IN_SLUG: Final = re.compile("[^A-Za-z0-9]")


class AgentFile(Struct, frozen=True, kw_only=True):
    """A file that agents load; its text is untrusted, and masked.

    `agents` are the titles of the agents that load it. `file` is project-relative, or begins with `~/`. `loaded` is the
    number of lines that the agents read from the start; the rest has no effect.
    """

    agents: tuple[str, ...]
    file: str
    lines: tuple[str, ...]
    loaded: int

    @property
    def text(self) -> str:
        """The part that the agents read."""
        return "\n".join(self.lines[: self.loaded])


class _Agent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent loads; the fields are explained in `agent_files.toml`."""

    title: str
    folder: str
    project: tuple[str, ...]
    variable: str = ""
    private: tuple[str, ...] = ()
    short: str = ""
    limit: int = MAX_BYTES
    lines: int = 0


_AGENTS: Final[Mapping[str, _Agent]] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("agent_files.toml").read_text("utf-8")), dict[str, _Agent]
)


def put_first(files: Iterable[AgentFile], agent: str) -> tuple[AgentFile, ...]:
    """Return the files with those of an agent first; it is named as in `Loop.agent`."""
    title = _AGENTS[agent].title if agent in _AGENTS else ""
    return tuple(sorted(files, key=lambda file: title not in file.agents))


def project_slug(folder: Path) -> str:
    """Return the name that Claude Code gives to a folder: other characters than letters and digits become hyphens."""
    return _NOT_IN_SLUG.sub("-", str(folder))


def read_agent_files(files: RunnerFiles) -> tuple[AgentFile, ...]:
    """Read the files that agents load by themselves, those of the project first."""
    found: dict[Path, AgentFile] = {}
    for agent in _AGENTS.values():
        for path in _paths(agent, files):
            text = mask_secrets(files.text(path, MAX_BYTES))
            if not text.strip():
                continue
            known = found.get(path)
            lines = tuple(text.splitlines())
            loaded = _count_loaded(agent, path, lines)
            if known is None:
                found[path] = AgentFile(agents=(agent.title,), file=files.shown(path), lines=lines, loaded=loaded)
            else:
                agents = (*known.agents, agent.title)
                found[path] = msgspec.structs.replace(known, agents=agents, loaded=max(known.loaded, loaded))
    return tuple(sorted(found.values(), key=lambda one: (one.file.startswith(("~", "/")), one.file)))


def _paths(agent: _Agent, files: RunnerFiles) -> Iterator[Path]:
    folders: Folders = files.folders
    for name in agent.project:
        path = folders.project / name
        yield from files.names(path.parent, path.name) if "*" in name else (path,)
    private = folders.private(agent.variable, agent.folder)
    if private is not None:
        for name in agent.private:
            yield private / name.format(slug=project_slug(folders.project))


def _count_loaded(agent: _Agent, path: Path, lines: tuple[str, ...]) -> int:
    """Return the number of lines that the agent reads."""
    is_short = not agent.short or path.name == agent.short
    most = agent.lines if agent.lines and is_short else len(lines)
    size = 0
    for number, line in enumerate(lines[:most]):
        size += len(line.encode("utf-8", "replace")) + 1
        if is_short and size > agent.limit:
            return number
    return min(most, len(lines))
