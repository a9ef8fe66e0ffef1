"""What a connection needs (`connections.toml`), and entries in JSON and TOML.

Every other byte of a file is kept. A file that is not an object of the expected form is refused, never repaired.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any, Final

import msgspec
from msgspec import Struct

from core.agents.agent_table import AGENTS, SERVER, Moment
from core.base.errors import BadInput
from core.files.file_reader import decode_json
from core.files.json_editor import BadJson, JsonText
from core.files.managed_text import Block, decode_text

_HOOKS: Final = "hooks"
_PROGRAM: Final = "ralphdeck"
_STRING_OR_COMMENT: Final = re.compile(r'"(?:[^"\\]|\\.)*"|(?P<comment>//|/\*)', re.DOTALL)


class FilePaths(Struct, frozen=True, kw_only=True):
    """Paths of a file in a project and of the user, as in `connections.toml`, or ""."""

    project: str
    user: str


class HookFile(FilePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with the hooks, and the entry of an event."""

    entry: Mapping[str, Any]
    entries: Mapping[str, Mapping[str, Any]] = {}  # of events with another entry
    document: Mapping[str, Any] = {}  # further members of a new file
    trusted_in: str = ""  # TOML file with the hooks that the user trusts; "" if hooks need no trust


class McpFile(FilePaths, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file with MCP servers, the key of the object with them, and the entry."""

    key: str
    entry: Mapping[str, Any]
    document: Mapping[str, Any] = {}
    left: str = ""  # what is left for the user once the entry is written
    by_hand: str = ""  # the command for the user's entry, where there is no file to write


class Switch(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An agent's setting that stops all hooks with this value in one of the files."""

    files: Sequence[str]
    key: str  # with dots between the keys of nested objects
    value: bool


class PluginList(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Files that list the plugins of the agent, and the key of the object with them."""

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
        """List what is left for the user; nothing on MCP servers without an entry."""
        has_entry = has_mcp and bool(self.mcp.user if is_global else self.mcp.project)
        server = (self.mcp.left,) if has_entry and self.mcp.left else ()
        return (*self.left, *(() if is_global else self.left_in_project), *server)

    def home_folder(self) -> Path:
        """Return the folder with the user's files of the agent."""
        named = os.environ.get(self.home_variable, "") if self.home_variable else ""
        return _expand(named or self.home)

    def resolve(self, path: str, project: Path) -> tuple[Path, Path]:
        """Return a table path as absolute, and the folder it must not leave by a link."""
        for prefix, root in (("{home}/", self.home_folder), ("~/", Path.home)):
            if path.startswith(prefix):
                folder = root()
                return folder / path.removeprefix(prefix), folder
        return project / path, project


CONNECTIONS: Final[Mapping[str, Connection]] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("connections.toml").read_text("utf-8")), dict[str, Connection]
)


def start_event(agent: str) -> str:
    """Return the agent's name of the session start event; "" if it runs no hooks."""
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


class HookEntries(Struct, frozen=True):
    """Hooks of an agent, an entry for each event, with `{hook}` for the command.

    Entries that name the same program in another way are up to date, because a team shares the file.
    """

    entries: Mapping[str, Mapping[str, Any]]
    document: Mapping[str, Any]
    program: str
    arguments: str

    def merge(self, data: bytes | None) -> bytes:
        """Add missing entries and replace outdated ones; BadInput for another form."""
        if is_blank(data):
            return new_document({**self.document, _HOOKS: self._wanted(self.program)})
        assert data is not None
        document = open_json(data)
        for key, value in self.document.items():
            if document.value.get(key, value) != value:
                raise BadInput(f"{key} is {document.value[key]!r}; only {value!r} is supported")
        hooks = self._hooks(document)
        wanted = self._wanted(usable_program(next(hook_programs(document.value), ""), self.program))
        if hooks is not None and _own_entries(hooks) == wanted:
            return data
        for key, value in self.document.items():
            if key not in document.value:
                document.set((), key, value)
        if hooks is None:
            document.set((), _HOOKS, wanted)
            return document.encode()
        self._remove(document)
        for event, entries in wanted.items():
            if event in document.value[_HOOKS]:
                document.append((_HOOKS, event), entries[0])
            else:
                document.set((_HOOKS,), event, entries)
        return document.encode()

    def strip(self, data: bytes, original: bytes | None = None) -> bytes:
        """Remove ralphdeck's entries, and what is then empty and not in `original`."""
        if is_blank(data):
            return data
        document = open_json(data)
        hooks = self._hooks(document)
        if hooks is None or not any(True for _ in _own_hooks(hooks)):
            return data
        kept = _object(_parsed(original).get(_HOOKS))
        for event in self._remove(document):
            if not document.value[_HOOKS][event] and event not in kept:
                document.remove((_HOOKS, event))
        if not document.value[_HOOKS] and _HOOKS not in _parsed(original):
            document.remove((_HOOKS,))
        return document.encode()

    def _hooks(self, document: JsonText) -> dict[str, Any] | None:
        if _HOOKS not in document.value:
            return None
        hooks = document.value[_HOOKS]
        if not isinstance(hooks, dict):
            raise BadInput(f"{_HOOKS} is not an object")
        for event in self.entries:
            if not isinstance(hooks.get(event, []), list):
                raise BadInput(f"{_HOOKS}.{event} is not a list")
        return hooks

    def _wanted(self, program: str) -> dict[str, list[Any]]:
        command = f"{shlex.quote(program)} {self.arguments}"
        return {event: [fill(entry, hook=command)] for event, entry in self.entries.items()}

    def _remove(self, document: JsonText) -> list[str]:
        """Remove the entries of ralphdeck; returns the events that had one."""
        own = list(_own_hooks(document.value[_HOOKS]))
        for event, index, inner in reversed(own):
            path: tuple[str | int, ...] = (_HOOKS, event, index)
            if inner is not None:
                group = document.value[_HOOKS][event][index][_HOOKS]
                if len(group) > 1:
                    path = (*path, _HOOKS, inner)
            document.remove(path)
        return list(dict.fromkeys(event for event, _, _ in own))


class McpEntry(Struct, frozen=True):
    """MCP server in `key` of a JSON file, with `{program}` in it; see `HookEntries`."""

    key: str
    entry: Mapping[str, Any]
    document: Mapping[str, Any]
    program: str

    def merge(self, data: bytes | None) -> bytes:
        """Add the server, or bring it up to date; keys that others added to it stay."""
        wanted = fill(self.entry, program=self.program)
        if is_blank(data):
            return new_document({**self.document, self.key: {SERVER: wanted}})
        assert data is not None
        document = open_json(data)
        servers = self._servers(document)
        if servers is None:
            document.set((), self.key, {SERVER: wanted})
            return document.encode()
        present = servers.get(SERVER)
        if SERVER in servers and not is_own_server(present):
            raise BadInput(f"{self.key}.{SERVER} exists and is another server; rename it")
        wanted = fill(self.entry, program=usable_program(server_program(present), self.program))
        if isinstance(present, dict) and all(present.get(key) == value for key, value in wanted.items()):
            return data
        document.set((self.key,), SERVER, {**_object(present), **wanted})
        return document.encode()

    def strip(self, data: bytes, original: bytes | None = None) -> bytes:
        """Remove the server, and `key` if it is then empty and was not in `original`."""
        if is_blank(data):
            return data
        document = open_json(data)
        servers = self._servers(document)
        if servers is None or not is_own_server(servers.get(SERVER)):
            return data
        document.remove((self.key, SERVER))
        if not document.value[self.key] and self.key not in _parsed(original):
            document.remove((self.key,))
        return document.encode()

    def _servers(self, document: JsonText) -> dict[str, Any] | None:
        if self.key not in document.value:
            return None
        servers = document.value[self.key]
        if not isinstance(servers, dict):
            raise BadInput(f"{self.key} is not an object")
        return servers


def open_json(data: bytes) -> JsonText:
    """Open a JSON object for edits; BadInput with the place of the first defect."""
    decoded = decode_json(data)
    if decoded.problems:
        problem = decoded.problems[0]
        if decoded.failed and (line := _comment_line(data)):
            raise BadInput(f"line {line}: JSON with comments is not changed; add the entries by hand (see --print)")
        place = f"{problem.place}: " if problem.place else ""
        raise BadInput(f"{place}{problem.message.partition(';')[0]}")
    try:
        document = JsonText(data)
    except BadJson as error:
        raise BadInput(f"is not JSON that can be edited: {error}") from None
    if document.is_lines or not isinstance(document.value, dict):
        raise BadInput("is not a JSON object")
    return document


def is_blank(data: bytes | None) -> bool:
    """Return whether a JSON file is missing or has no content."""
    return data is None or not data.strip() or data.split() in ([b"{}"], [b"{", b"}"])


def new_document(value: Mapping[str, Any]) -> bytes:
    """Write a new JSON file, with one line for each hook or server."""
    return f"{_dump(value, 2)}\n".encode()


def _dump(value: Any, levels: int, indent: str = "") -> str:
    if not levels or not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    inner = f"{indent}  "
    members = (f"{inner}{json.dumps(key)}: {_dump(item, levels - 1, inner)}" for key, item in value.items())
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"


def hook_program(entry: Mapping[str, Any]) -> str:
    """Return the program of an entry that runs `ralphdeck hook`; "" if it does not."""
    for key in ("command", "bash"):
        command = entry.get(key)
        words = [*_split(command), *_texts(entry.get("args"))] if isinstance(command, str) else []
        for word, following in pairwise(words):
            if PurePath(word).name == _PROGRAM and following == "hook":
                return word
    return ""


def hook_programs(value: Any) -> Iterator[str]:
    """Yield the program of each hook of ralphdeck in a parsed file."""
    hooks = _object(_object(value).get(_HOOKS))
    for event, index, inner in _own_hooks(hooks):
        entry = hooks[event][index]
        yield hook_program(entry if inner is None else entry[_HOOKS][inner])


def is_same_program(one: str, other: str) -> bool:
    """Return whether two names start the same file; projects may name any program."""
    found = [shutil.which(name) for name in (one, other)]
    return one == other or (None not in found and len({os.path.realpath(path or "") for path in found}) == 1)


def _own_hooks(hooks: Mapping[str, Any]) -> Iterator[tuple[str, int, int | None]]:
    """Yield event and index of each own entry, and its index in a matcher's group."""
    for event, entries in hooks.items():
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if not isinstance(entry, dict):
                continue
            if hook_program(entry):
                yield event, index, None
                continue
            inner = entry.get(_HOOKS)
            for number, hook in enumerate(inner if isinstance(inner, list) else ()):
                if isinstance(hook, dict) and hook_program(hook):
                    yield event, index, number


def _own_entries(hooks: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for event, index, _ in _own_hooks(hooks):
        found.setdefault(event, []).append(hooks[event][index])
    return found


def is_own_server(entry: Any) -> bool:
    """Return whether the entry of an MCP server starts ralphdeck."""
    return PurePath(server_program(entry)).name == _PROGRAM


def usable_program(present: str, program: str) -> str:
    """Return the program as a file names it if it is the same, else `program`."""
    return present if is_same_program(present, program) else program


def server_program(entry: Any) -> str:
    """Return the program that the entry of an MCP server starts; "" for none."""
    command = _object(entry).get("command")
    return command if isinstance(command, str) else next(iter(_texts(command)), "")


def _comment_line(data: bytes) -> int:
    """Return the line of the first comment outside of strings; 0 for none."""
    text = data.decode(errors="replace")
    starts = (found.start() for found in _STRING_OR_COMMENT.finditer(text) if found["comment"])
    return next((text.count("\n", 0, start) + 1 for start in starts), 0)


def _parsed(data: bytes | None) -> dict[str, Any]:
    return _object(decode_json(data).value) if data else {}


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


# TOML


class TomlTable(Struct, frozen=True):
    """A TOML table in a marked block at the end; tomllib checks before and after."""

    key: str
    entry: Mapping[str, Any]  # with `{program}`
    program: str

    def merge(self, data: bytes | None) -> bytes:
        """Add or update the block; BadInput for an invalid file or another such table."""
        before = parse_toml(data or b"")
        servers = before.get(self.key, {})
        if not isinstance(servers, dict):
            raise BadInput(f"{self.key} is not a table")
        present = servers.get(SERVER)
        wanted = fill(self.entry, program=usable_program(server_program(present), self.program))
        if data is not None and present == wanted:
            return data
        if SERVER in servers and self.strip(data or b"") == data:
            raise BadInput(f"{self._header()} exists and was not written by ralphdeck; remove it")
        merged = self._block(wanted).merge(self.strip(data) if data else data)
        if parse_toml(merged) != {**before, self.key: {**servers, SERVER: wanted}}:
            raise BadInput(f"{self._header()} cannot be added without changing other tables")
        return merged

    def strip(self, data: bytes, _original: bytes | None = None) -> bytes:
        """Remove the lines of the block, but not an agent's tables between its marks."""
        parse_toml(data)
        content = decode_text(data)
        found = _TOML_MARKS.find(content)
        if found is None:
            return data
        block = found.match
        lines = found.text.splitlines(keepends=True)
        header = next((n for n, line in enumerate(lines) if line.strip() == self._header()), None)
        if header is None:
            others = "".join(lines)
        else:
            end = next((n for n in range(header + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines))
            others = "".join([*lines[:header], *lines[end:]])
        if not others.strip():
            return _TOML_MARKS.strip(data)
        stripped = (content[: block.start()] + others + content[block.end() :]).encode()
        parse_toml(stripped)
        return stripped

    def _header(self) -> str:
        return f"[{self.key}.{SERVER}]"

    def _block(self, entry: Mapping[str, Any]) -> Block:
        lines = [f"{name} = {_toml_value(value)}" for name, value in entry.items()]
        return Block("\n".join((self._header(), *lines)), "# ", "")


_TOML_MARKS: Final = Block("", "# ", "")


def parse_toml(data: bytes) -> dict[str, Any]:
    """Parse TOML; BadInput with the place of the first error."""
    try:
        return tomllib.loads(decode_text(data))
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"not TOML: {error}") from None
    except RecursionError:
        raise BadInput("nested too deeply") from None


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml_value, value))}]"
    # The escapes of JSON are also those of TOML, which escapes one more character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
