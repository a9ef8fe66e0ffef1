"""Text that ralphdeck manages in files of others: a marked block, or a whole file with a mark.

A mark contains a hash of the text. A text that does not match its hash was edited by a person, and is never replaced.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from core.agents.agent_table import SERVER
from core.agents.connection_table import fill
from core.agents.json_entries import server_program, usable_program
from core.base.errors import BadInput

_VERSION: Final = "v1"
_HASH: Final = r"[0-9a-f]{8}"


def text_digest(text: str) -> str:
    """Return the hash of a managed text, without regard to line ends and outer white space."""
    return sha256("\n".join(text.split("\n")).replace("\r", "").strip().encode("utf-8", "replace")).hexdigest()[:8]


class Block(Struct, frozen=True):
    """A marked block in a text file; `opening` and `closing` are the marks of a comment in that file."""

    text: str
    opening: str = "<!-- "
    closing: str = " -->"

    def merge(self, data: bytes | None) -> bytes:
        """Add the block at the end, or bring the present one up to date; BadInput if that is not possible."""
        content = decode_text(data or b"")
        newline = "\r\n" if "\r\n" in content else "\n"
        wanted = self._written().replace("\n", newline)
        found = self.find(content)
        if found is None:
            lead = newline if content and not content.endswith("\n") else ""
            gap = newline if content.strip() else ""
            return f"{content}{lead}{gap}{wanted}".encode()
        is_edited = found[1] is None or text_digest(found[2]) != found[1]
        is_current = found[0][0].replace("\r\n", "\n").rstrip() == self._written().rstrip()
        if is_edited or is_current:
            return data or b""
        return (content[: found[0].start()] + wanted + content[found[0].end() :]).encode()

    def strip(self, data: bytes, _original: bytes | None = None) -> bytes:
        """Remove the block, and the empty line before it if nothing follows."""
        content = decode_text(data)
        found = self.find(content)
        if found is None:
            return data
        before, after = content[: found[0].start()], content[found[0].end() :]
        if not after:
            before = re.sub(r"(\n|\A)\r?\n\Z", r"\1", before)
        return (before + after).encode()

    def _written(self) -> str:
        text = self.text.strip("\n")
        begin = f"{self.opening}BEGIN ralphdeck {_VERSION} hash:{text_digest(text)}{self.closing}"
        return f"{begin}\n{text}\n{self.opening}END ralphdeck{self.closing}\n"

    def find(self, content: str) -> tuple[re.Match[str], str | None, str] | None:
        """Return the block with its hash and text; BadInput if its marks are not one pair."""
        opening, closing = re.escape(self.opening), re.escape(self.closing)
        begin = rf"^{opening}BEGIN ralphdeck\b[^\r\n]*{closing}\r?$"
        end = rf"^{opening}END ralphdeck{closing}[ \t]*\r?$"
        begins, ends = (list(re.finditer(mark, content, re.MULTILINE)) for mark in (begin, end))
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
            line = content.count("\n", 0, (begins or ends)[0].start()) + 1
            raise BadInput(f"line {line}: the marks of the ralphdeck block are not one pair; remove them")
        block = re.compile(rf"{begin}\n(?P<text>.*?)(?:{end})\n?", re.MULTILINE | re.DOTALL).search(content)
        assert block is not None
        named = re.search(rf"hash:({_HASH})", begins[0][0])
        return block, named[1] if named else None, block["text"]


class OwnFile(Struct, frozen=True):
    """A whole file that ralphdeck writes, with a mark at its end."""

    text: str

    def merge(self, data: bytes | None) -> bytes:
        """Return the file's text; a file that a person edited is returned unchanged."""
        if data is not None and data.strip():
            text, digest = self._split(data)
            if digest is None:
                raise BadInput("exists and was not written by ralphdeck; move it away")
            if text_digest(text) != digest:
                return data
        body = self.text.strip("\n")
        return f"{body}\n\n<!-- ralphdeck {_VERSION} hash:{text_digest(body)} -->\n".encode()

    def strip(self, data: bytes, _original: bytes | None = None) -> bytes:
        """Return an empty file, or a file of others or one that a person edited unchanged."""
        text, digest = self._split(data)
        return b"" if digest is not None and text_digest(text) == digest else data

    def _split(self, data: bytes) -> tuple[str, str | None]:
        content = decode_text(data)
        mark = re.search(rf"^<!-- ralphdeck v\d+ hash:({_HASH}) -->\s*\Z", content, re.MULTILINE)
        return (content[: mark.start()], mark[1]) if mark else (content, None)


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
        block = found[0]
        lines = block["text"].splitlines(keepends=True)
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


def decode_text(data: bytes) -> str:
    """Decode UTF-8; BadInput if it is not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"byte {error.start:,}: not UTF-8") from None


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
