"""Text that ralphdeck manages in others' files: a marked block or whole file.

A mark contains a hash of the text. A text that does not match its hash was edited by a person, and is never replaced.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Collection, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from core.base.errors import BadInput
from core.files.file_reader import Problem, RawFile, read_file

SHARED_INSTRUCTIONS: Final = "AGENTS.md"  # read by most agents, and imported by the instructions of others
_IMPORT: Final = re.compile(r"^(?! {4}|\t)(?:[^\n]*[^\S\n])?@(?:\./)?AGENTS\.md(?!\S)", re.MULTILINE)
_NO_IMPORTS: Final = re.compile(  # comments, code blocks and code in a line; all without quadratic time
    r"<!--.*?(?:-->|\Z)"
    r"|^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,}).*?(?:^[ \t>]*\1[`~]*[ \t]*\r?$|\Z)"
    r"|(?<!`)(`++).{1,1000}?(?<!`)\2(?!`)",
    re.MULTILINE | re.DOTALL,
)
MAX_BYTES: Final = 2 << 20  # longest file of an agent that is read or changed
_VERSION: Final = "v1"
_HASH: Final = r"[0-9a-f]{8}"
_PROGRAM: Final = "ralphdeck"  # name of the section about the tools
LESSONS: Final = "lessons of ralphdeck"  # name of the section with approved lessons
_OTHER_BLOCK: Final = re.compile(rf"\r?\n<!-- BEGIN {LESSONS} ")
_OWN_BEGIN: Final = re.compile(rf"(?:<!--|#) ?BEGIN (?:{LESSONS}|{_PROGRAM})\b")
_OWN_END: Final = re.compile(rf"(?:<!--|#) ?END (?:{LESSONS}|{_PROGRAM})\b")
_OWN_FILE: Final = re.compile(r"<!-- ralphdeck v\d+ hash:")


def find_own_lines(lines: Sequence[str]) -> frozenset[int]:
    """Return the line numbers, from 1, of ralphdeck's marked blocks or whole file."""
    if any(map(_OWN_FILE.match, lines[-3:])):
        return frozenset(range(1, len(lines) + 1))
    own, is_own = set[int](), False
    for number, line in enumerate(lines, 1):
        is_own = is_own or bool(_OWN_BEGIN.match(line))
        if is_own:
            own.add(number)
        is_own = is_own and not _OWN_END.match(line)
    return frozenset(own)


def text_digest(text: str) -> str:
    """Return the hash of a managed text, ignoring line ends and outer white space."""
    return sha256("\n".join(text.split("\n")).replace("\r", "").strip().encode("utf-8", "replace")).hexdigest()[:8]


class Block(Struct, frozen=True):
    """A marked block in a text file; `opening` and `closing` are its comment marks.

    With another `name` than that of the section about the tools, the mark also records what was added before it, so
    that removing the block restores the file from its own bytes. `replaces_edits` replaces a block that was edited.
    """

    text: str
    opening: str = "<!-- "
    closing: str = " -->"
    name: str = _PROGRAM
    replaces_edits: bool = False

    def merge(self, data: bytes | None) -> bytes:
        """Add the block at the end or update the present one; BadInput if impossible."""
        content = decode_text(data or b"")
        newline = "\r\n" if "\r\n" in content else "\n"
        found = self.find(content)
        if found is None:
            lead = newline if content and not content.endswith("\n") else ""
            gap = newline if content.strip() else ""
            added = "new" if data is None else str((lead + gap).count("\n"))
            written = self._written(added).replace("\n", newline)
            return f"{content}{lead}{gap}{written}".encode()
        newline = "\r\n" if found.match[0].partition("\n")[0].endswith("\r") else "\n"
        written = self._written(found.added)
        is_current = found.match[0].replace("\r\n", "\n").rstrip() == written.rstrip()
        if is_current or (found.is_edited and not self.replaces_edits):
            return data or b""
        start, end = found.match.span()
        return (content[:start] + written.replace("\n", newline) + content[end:]).encode()

    def strip(self, data: bytes, _original: bytes | None = None) -> bytes:
        """Remove the block and what was added before it."""
        content = decode_text(data)
        found = self.find(content)
        if found is None:
            return data
        before, after = content[: found.match.start()], content[found.match.end() :]
        if found.added.isdigit():
            newline = "\r\n" if found.match[0].partition("\n")[0].endswith("\r") else "\n"
            for _ in range(int(found.added)):
                shorter = before.removesuffix(newline)
                if not after or shorter.endswith("\n"):  # what follows stays on a line of its own
                    before = shorter
        elif not after or _OTHER_BLOCK.match(after):
            before = re.sub(r"(\n|\A)\r?\n\Z", r"\1", before)
        return (before + after).encode()

    def _written(self, added: str) -> str:
        text = self.text.strip("\n")
        more = f" added:{added}" if self.name != _PROGRAM else ""
        begin = f"{self.opening}BEGIN {self.name} {_VERSION} hash:{text_digest(text)}{more}{self.closing}"
        return f"{begin}\n{text}\n{self.opening}END {self.name}{self.closing}\n"

    def find(self, content: str) -> FoundBlock | None:
        """Return the block in a text; BadInput if its marks are not one pair."""
        opening, closing = re.escape(self.opening), re.escape(self.closing)
        begin = rf"^{opening}BEGIN {self.name}\b[^\r\n]*{closing}\r?$"
        end = rf"^{opening}END {self.name}{closing}[ \t]*\r?$"
        begins, ends = (list(re.finditer(mark, content, re.MULTILINE)) for mark in (begin, end))
        if not begins and not ends:
            return None
        if len(begins) != 1 or len(ends) != 1 or begins[0].start() > ends[0].start():
            line = content.count("\n", 0, (begins or ends)[0].start()) + 1
            raise BadInput(f"line {line}: the marks of the ralphdeck block are not one pair; remove them")
        block = re.compile(rf"{begin}\n(?P<text>.*?)(?:{end})\n?", re.MULTILINE | re.DOTALL).search(content)
        assert block is not None
        digest = re.search(rf"hash:({_HASH})", begins[0][0])
        added = re.search(r"added:([0-2]|new)\b", begins[0][0])
        return FoundBlock(block, block["text"], digest[1] if digest else "", added[1] if added else "")


class FoundBlock(NamedTuple):
    """A block in a text, with what its mark records."""

    match: re.Match[str]
    text: str
    digest: str  # "" if the mark has none
    added: str  # number of line breaks that were added before it, `new` if it was the whole file, "" if not recorded

    @property
    def is_edited(self) -> bool:
        return text_digest(self.text) != self.digest


class OwnFile(Struct, frozen=True):
    """A whole file of ralphdeck, with an end mark; `replaces_edits`: edited ones too."""

    text: str
    replaces_edits: bool = False

    def merge(self, data: bytes | None) -> bytes:
        """Return the file's text; a file that a person edited is returned unchanged."""
        body = self.text.strip("\n")
        written = f"{body}\n\n<!-- ralphdeck {_VERSION} hash:{text_digest(body)} -->\n".encode()
        if data is not None and data.strip():
            text, digest = self.split(data)
            if not digest:
                raise BadInput("exists and was not written by ralphdeck; move it away")
            is_current = decode_text(data).replace("\r\n", "\n").rstrip() == written.decode().rstrip()
            if is_current or (text_digest(text) != digest and not self.replaces_edits):
                return data
        return written

    def strip(self, data: bytes, _original: bytes | None = None) -> bytes:
        """Empty the file; return a file of others or edited by a person unchanged."""
        text, digest = self.split(data)
        return b"" if digest and (self.replaces_edits or text_digest(text) == digest) else data

    def split(self, data: bytes) -> tuple[str, str]:
        """Return the text and the hash in its mark, "" without a mark."""
        content = decode_text(data)
        mark = re.search(rf"^<!-- ralphdeck v\d+ hash:({_HASH}) -->\s*\Z", content, re.MULTILINE)
        return (content[: mark.start()], mark[1]) if mark else (content, "")


def decode_text(data: bytes) -> str:
    """Decode UTF-8; BadInput if it is not."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"byte {error.start:,}: not UTF-8") from None


def read_part(path: Path, root: Path) -> bytes | None:
    """Read an agent's file; None if missing. BadInput for links, folders, long files."""
    for place in reversed([path, *path.parents]):
        if not place.is_relative_to(root) or place == root:
            continue
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror}") from None
        if stat.S_ISLNK(mode):
            name = "" if place == path else f"{place.relative_to(root)} "
            raise BadInput(f"{name}is a link, which is not followed; add the entries by hand (see --print)")
        if place != path and not stat.S_ISDIR(mode):
            raise BadInput(f"{place.relative_to(root)} is not a folder")
    read = read_file(path, root, MAX_BYTES)
    if isinstance(read, Problem):
        raise BadInput(read.message)
    return read.data if isinstance(read, RawFile) else None


def find_linked_file(file: Path, project: Path, names: Collection[str]) -> Path:
    """Return the instructions file, or the named file beside it that it links to."""
    try:
        linked = project / file.readlink()
    except OSError:
        return file
    return linked if linked.parent == project and linked.name in names else file


def imports_shared(file: Path, project: Path) -> bool:
    """Return whether instructions import AGENTS.md outside of code and comments.

    Lines are read as by Claude Code. False if they cannot be read, which is reported elsewhere.
    """
    try:
        data = read_part(file, project)
        return data is not None and _IMPORT.search(_NO_IMPORTS.sub("`", decode_text(data))) is not None
    except BadInput:
        return False
