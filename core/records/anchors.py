"""Anchors of patterns in files, and their changes (docs/curation.md#anchors)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Final, Literal

from msgspec import Struct

MAX_ANCHORS: Final = 10  # anchors of one pattern; further ones are ignored
COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_CHARS: Final = 400  # of one anchor
_NAME: Final = re.compile(r"[^\W\d][\w$.:@/-]*|[$@][\w$.:@/-]+")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
"""Control characters, and those that are invisible or change the direction of text."""
_PLAIN_PATH: Final = re.compile(r"[\w./@+-]+")
_FILE_ENDING: Final = re.compile(r"\.[^\W\d_]\w*\Z")
_DIFF_HEADER: Final = re.compile(r"(?:---|\+\+\+|diff --git) [ab]/")
_MANIFESTS: Final = frozenset(
    {
        *("pyproject.toml", "setup.py", "setup.cfg", "Pipfile", "package.json", "Cargo.toml", "go.mod", "Gemfile"),
        *("composer.json", "pom.xml", "build.gradle", "build.gradle.kts", "mix.exs", "pubspec.yaml", "Package.swift"),
    }
)
_REQUIREMENTS: Final = re.compile(r"(?:.*[-_.])?requirements(?:[-_.].*)?\.(?:txt|in)")


class Anchor(Struct, frozen=True):
    """A project-relative file and a symbol or dependency in it; "" for the file."""

    file: str
    name: str = ""

    @property
    def text(self) -> str:
        """Stored as `src/cart.py`, `src/cart.py#Cart.total` or `package.json#left-pad`."""
        return f"{self.file}#{self.name}" if self.name else self.file

    @property
    def is_dependency(self) -> bool:
        return bool(self.name) and is_manifest(self.file)

    def is_in(self, content: str) -> bool:
        """Return whether the file's text has the name; True for an anchor without one."""
        return all(one.search(content) for one in _words(self.name, self.is_dependency))


class AnchorChange(Struct, frozen=True, kw_only=True):
    """What Git shows about an anchor that the project no longer has.

    `commit` is the full ID of the commit that removed it, `at` its time. `to` is the anchor that it was renamed to, or
    the one in the file that now defines the name; "" if it was removed. A file with `has_unusable_name` counts as
    removed: it was renamed to a name that no anchor can have.
    """

    anchor: str
    change: Literal["removed", "renamed", "moved"]
    commit: str
    at: datetime
    to: str = ""
    has_unusable_name: bool = False

    @property
    def verb(self) -> str:
        """Verb after `was`: `removed`, `renamed`, `moved`, `renamed to an unusable name`."""
        return "renamed to an unusable name" if self.has_unusable_name else self.change

    @property
    def is_removed(self) -> bool:
        return self.change == "removed"


def newest_change(changes: Sequence[AnchorChange]) -> AnchorChange:
    """Return the last change; within one commit, that of a file before its names."""
    return max(changes, key=lambda one: (one.at, one.commit, "#" not in one.anchor))


def parse_anchor(text: str) -> Anchor | None:
    """Parse `path` or `path#name`; None if not a relative path inside the project."""
    anchor = _split(text)
    return None if _find_defect(text, anchor.file) else anchor


def explain_invalid(text: str) -> str:
    """Return why a text is not an anchor; "" if it is one."""
    return _find_defect(text, _split(text).file)


def _split(text: str) -> Anchor:
    file, mark, name = text.strip(" ").replace("\\", "/").rpartition("#")
    if not mark or not _NAME.fullmatch(name):
        file, name = text.strip(" ").replace("\\", "/"), ""
    return Anchor(file.removeprefix("./"), name)


def _find_defect(text: str, file: str) -> str:
    parts = file.split("/")
    if len(text) > _MAX_CHARS:
        return f"it is longer than {_MAX_CHARS} characters"
    if _CONTROL.search(file):
        return "it has a control character or an invisible one"
    if file.startswith("-"):  # an option for programs that get the path
        return "a path cannot begin with `-`"
    if parts[0] in (".git", ".aiwg"):
        return f"files of {parts[0]} are not part of the project"
    if not all(parts) or ":" in parts[0] or {".", "..", "~"} & {*parts}:
        return "it is not a path inside the project"
    return ""


def list_anchors(texts: Iterable[str]) -> tuple[Anchor, ...]:
    """Return the valid anchors among some texts, each once, at most `MAX_ANCHORS`."""
    found = (parse_anchor(text) for text in texts)
    return tuple(dict.fromkeys(one for one in found if one is not None))[:MAX_ANCHORS]


def renamed_files(changes: Iterable[AnchorChange]) -> dict[str, str]:
    """Return the files that were renamed, with their new paths."""
    pairs = ((parse_anchor(one.anchor), parse_anchor(one.to)) for one in changes if one.change == "renamed")
    return {old.file: new.file for old, new in pairs if old is not None and new is not None}


def rename_in_text(text: str, renames: Mapping[str, str]) -> str:
    """Replace file paths in a text, except in a longer path or as a bare file name.

    A file name without an ending, such as `Measure`, can be an ordinary word: it is replaced only in the header of a
    diff. A new path with spaces or other punctuation could read as a sentence: no text gets it.
    """
    renames = {old: new for old, new in renames.items() if old in text and _PLAIN_PATH.fullmatch(new)}
    if not renames:
        return text
    paths = sorted(renames, key=len, reverse=True)
    every = "|".join(map(re.escape, paths))
    clear = "|".join(re.escape(old) for old in paths if "/" in old or _FILE_ENDING.search(old))
    path = re.compile(rf"(?<![\w./\\-])((?:\./)?)({clear})(?![\w/\\-]|\.\w)") if clear else None
    side = re.compile(rf"(?<= )([ab]/)({every})(?![\w/\\-]|\.\w)")
    lines = []
    for line in text.split("\n"):
        if _DIFF_HEADER.match(line):  # only there, `a/` and `b/` are not folders
            line = side.sub(lambda found: found[1] + renames[found[2]], line)
        elif path is not None:
            line = path.sub(lambda found: found[1] + renames[found[2]], line)
        lines.append(line)
    return "\n".join(lines)


def is_manifest(file: str) -> bool:
    """Return whether a file lists the dependencies of a program."""
    name = file.rpartition("/")[2]
    return name in _MANIFESTS or _REQUIREMENTS.fullmatch(name) is not None


@cache
def _words(name: str, is_dependency: bool) -> tuple[re.Pattern[str], ...]:
    """Return expressions that find a name as whole words."""
    if not name:
        return ()
    if is_dependency:  # packages are the same with - and _, in any case
        spelled = re.sub(r"[-_.]", "[-_.]", re.escape(name).replace(r"\-", "-").replace(r"\.", "."))
        return (re.compile(rf"(?<![\w.@/-]){spelled}(?![\w./-])", re.IGNORECASE),)
    words = filter(None, re.split(r"[^\w$]+", name))
    return tuple(re.compile(rf"(?<![\w$]){re.escape(word)}(?![\w$])") for word in words)
