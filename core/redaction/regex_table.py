"""Regular expressions from a YAML file beside the module that uses them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

_PART: Final = re.compile(r"\{([a-z_]+)\}")


class RegexTable(dict[str, re.Pattern[str]]):
    """Regular expressions of a YAML file; `{name}` includes an earlier one or a part."""

    def __init__(self, path: Path, **parts: str) -> None:
        super().__init__()
        self._path, self._parts = path, parts

    def __missing__(self, name: str) -> re.Pattern[str]:
        compiled = self[name] = re.compile(self.sources[name])
        return compiled

    @cached_property
    def sources(self) -> dict[str, str]:
        """The source texts of the expressions; the first access reads the file."""
        import yaml  # not needed where no expression is used

        sources = dict(self._parts)
        for name, text in yaml.load(self._path.read_bytes(), yaml.CSafeLoader).items():
            sources[name] = expand_parts(text, sources)
        return sources


def expand_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Remove the line breaks of an expression and insert `parts` for `{name}`."""
    return _PART.sub(lambda part: parts[part[1]], pattern.replace("\n", ""))
