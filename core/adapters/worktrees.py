"""The folders of a project and its user: Git working trees, found without running Git, and the home folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Final

from core.adapters.folders import Folders
from core.storage.file_reader import RawFile, read_file

MAX_WORKTREES: Final = 100
_MAX_BYTES: Final = 4096
_KEY: Final = "gitdir:"
_ENDINGS: Final = ("_HOME", "_DIR")  # of variables that can name the private folder of an agent


def find_folders(project: Path, environment: Mapping[str, str], *, has_home: bool) -> Folders:
    """Return the folders of a project; without `has_home`, none below the home folder or of an agent."""
    project = project.resolve()
    home: Path | None = None
    named: dict[str, str] = {}
    if has_home:
        home = _resolved(environment.get("HOME", ""))
        named = {name: value for name, value in environment.items() if name.endswith(_ENDINGS) and value}
    return Folders(project=project, worktrees=find_worktrees(project), home=home, environment=named)


def find_worktrees(project: Path) -> tuple[Path, ...]:
    """Return the other Git working trees of the repository whose working tree is `project`."""
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
