"""Regular expressions compiled on first use: some take 1 to 3 ms to compile."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import AnyStr, Final, Generic, cast

_BLOCK: Final = re.compile(r"([^\s#:][^:]*): \|2?-")
_INDENT: Final = "  "
_PART: Final = re.compile(r"\{([a-z_]+)\}")


def lazy_regex(pattern: AnyStr, flags: int = 0, *, literals: tuple[str, ...] = ()) -> re.Pattern[AnyStr]:
    """Return a regular expression compiled on first use: a hook uses one in three.

    `literals` are texts of which every match contains one; without any of them, `search` does not compile.
    """
    lazy = _LiteralRegex(str(pattern), flags, literals) if literals else _LazyRegex(pattern, flags)
    return cast("re.Pattern[AnyStr]", lazy)


class _LazyRegex(Generic[AnyStr]):
    def __init__(self, pattern: AnyStr, flags: int) -> None:
        self._pattern: AnyStr = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        """Return a method of the compiled expression; it is found directly from then on."""
        value = getattr(re.compile(self._pattern, self._flags), name)
        setattr(self, name, value)
        return value


class _LiteralRegex(_LazyRegex[str]):
    def __init__(self, pattern: str, flags: int, literals: tuple[str, ...]) -> None:
        super().__init__(pattern, flags)
        self._literals = literals

    def search(self, text: str) -> re.Match[str] | None:
        if not any(literal in text for literal in self._literals):
            return None
        return self._compiled.search(text)

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern, self._flags)


class RegexTable(dict[str, re.Pattern[str]]):
    """Regexes of a module's YAML file; `{name}` includes an earlier one or a part."""

    def __init__(self, path: Path, **parts: str) -> None:
        super().__init__()
        self._path, self._parts = path, parts

    def __missing__(self, name: str) -> re.Pattern[str]:
        compiled = self[name] = re.compile(self.sources[name])
        return compiled

    @cached_property
    def sources(self) -> dict[str, str]:
        """The source texts of the expressions; the first access reads the file."""
        sources = dict(self._parts)
        for name, lines in read_blocks(self._path).items():
            sources[name] = expand_parts("".join(lines), sources)
        return sources


def read_blocks(path: Path) -> dict[str, list[str]]:
    """Read the blocks of a YAML file with only comments and literals (`name: |-`).

    Importing a parser for all of YAML takes longer than logging a tool call. Raises ValueError for another form.
    """
    blocks: dict[str, list[str]] = {}
    lines: list[str] | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if (begin := _BLOCK.fullmatch(line)) is not None:
            lines = blocks[begin[1]] = []
        elif lines is not None and line.startswith(_INDENT):
            lines.append(line.removeprefix(_INDENT))
        elif line and not line.startswith("#"):
            raise ValueError(f"{path.name}, line {number}: expected 'name: |-', a line of its block, or a comment")
    return blocks


def expand_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Remove the line breaks of an expression and insert `parts` for `{name}`."""
    return _PART.sub(lambda part: parts[part[1]], pattern.replace("\n", ""))
