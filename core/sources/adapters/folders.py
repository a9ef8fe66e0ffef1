"""Folders that adapters read; Git working trees are found without running Git."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.files.file_reader import RawFile, read_file

MAX_WORKTREES: Final = 100
_MAX_BYTES: Final = 4096
_KEY: Final = "gitdir:"
_ENDINGS: Final = ("_HOME", "_DIR")  # of variables that can name the private folder of an agent


class Folders(Struct, frozen=True, kw_only=True):
    """Folders in which adapters look; all are absolute and without links.

    `worktrees` are the other Git working trees of the project. `home` is the user's home folder, None if the setting
    `sources.home` is off.
    """

    project: Path
    worktrees: tuple[Path, ...] = ()
    home: Path | None = None
    environment: Mapping[str, str] = {}

    @property
    def roots(self) -> tuple[Path, ...]:
        """The project and its other working trees."""
        return (self.project, *self.worktrees)

    def root_of(self, path: Path) -> Path:
        """Return the working tree of a path; the project if it is in none."""
        return next((root for root in self.roots if path.is_relative_to(root)), self.project)

    def cwd_of(self, root: Path) -> str:
        """Return a working tree as a loop's folder (`Loop.cwd`): "" for the project."""
        return "" if root == self.project else str(root)

    def prefix_of(self, root: Path) -> str:
        """Return the prefix that makes a loop's ID unique: "" for loops of the project."""
        return "" if root == self.project else f"{root}/"

    def private(self, variable: str, default: str) -> Path | None:
        """Return an agent's private folder: environment `variable`, else ~/`default`."""
        if self.home is None:
            return None
        named = self.environment.get(variable, "")
        return Path(named) if named.startswith("/") else self.home / default

    def path_of(self, shown: str) -> Path:
        """Return the path of a file that `RunnerFiles.shown` shows as this text."""
        return self.home / shown[2:] if shown.startswith("~/") and self.home is not None else self.project / shown

    def contain(self, folder: str) -> bool:
        """Return whether a session with this working folder belongs to the project."""
        path = Path(folder)
        return path.is_absolute() and ".." not in path.parts and any(path.is_relative_to(root) for root in self.roots)


def find_folders(project: Path, environment: Mapping[str, str], *, has_home: bool) -> Folders:
    """Return a project's folders; without `has_home`, none of home or of an agent."""
    project = project.resolve()
    home: Path | None = None
    named: dict[str, str] = {}
    if has_home:
        home = _resolved(environment.get("HOME", ""))
        named = {name: value for name, value in environment.items() if name.endswith(_ENDINGS) and value}
    return Folders(project=project, worktrees=find_worktrees(project), home=home, environment=named)


def find_worktrees(project: Path) -> tuple[Path, ...]:
    """Return the other Git working trees of the repository of `project`."""
    entry = project / ".git"
    common = entry
    if not entry.is_dir():
        own = _linked(entry)
        if own is None or own.parent.name != "worktrees":
            return ()
        common = own.parent.parent
    found = {tree for tree in _list_worktrees(common) if tree != project}
    if common != entry and common.name == ".git":
        found.add(common.parent)
    return tuple(sorted(found - {project}))


def _list_worktrees(common: Path) -> Iterator[Path]:
    """Yield the working trees that refer to the repository that lists them."""
    try:
        entries = sorted(islice((common / "worktrees").iterdir(), MAX_WORKTREES))
    except OSError:
        return
    for entry in entries:
        tree = _resolved(_line(entry / "gitdir"))
        if tree is not None and tree.name == ".git" and _linked(tree) == entry.resolve():
            yield tree.parent


def _linked(file: Path) -> Path | None:
    """Return the folder that the file `.git` of a working tree names."""
    line = _line(file)
    return _resolved(line.removeprefix(_KEY).strip()) if line.startswith(_KEY) else None


def _line(file: Path) -> str:
    raw = read_file(file, file.parent, _MAX_BYTES)
    return raw.data.decode("utf-8", "surrogateescape").partition("\n")[0].strip() if isinstance(raw, RawFile) else ""


def _resolved(path: str) -> Path | None:
    try:
        return Path(path).resolve(strict=True) if path.startswith("/") else None
    except (OSError, RuntimeError, ValueError):
        return None
