"""A table of ralphdeck in a TOML file of an agent."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from core.agents.agent_table import SERVER
from core.agents.connection_table import fill
from core.agents.json_entries import server_program, usable_program
from core.base.errors import BadInput
from core.files.managed_text import Block, decode_text


class TomlTable(Struct, frozen=True):
    """A table of a TOML file, in a marked block at its end; tomllib checks the file before and after."""

    key: str
    entry: Mapping[str, Any]  # with `{program}`
    program: str

    def merge(self, data: bytes | None) -> bytes:
        """Add the block, or bring it up to date; BadInput if the file is invalid or has another such table."""
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
        """Remove the lines of the block; tables that the agent wrote between its marks stay."""
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
    escaped = "".join(_toml_char(char) for char in str(value))
    return f'"{escaped}"'


def _toml_char(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    return f"\\u{ord(char):04x}" if ord(char) < 0x20 or ord(char) == 0x7F else char
