"""The folders of a project and its user, in which adapters look, and how reads report what they cannot use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from core.records.findings import Finding
    from core.storage.file_reader import Stamp


class Reports(Protocol):
    """The part of `RunnerFiles` that its readers use."""

    findings: list[Finding]

    def report(self, path: Path, message: str, code: str, place: str = "") -> None:
        """Report that a file could not be used."""

    def stamp(self, path: Path) -> Stamp | None:
        """Return the version of a file or folder; None if there is none."""


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
        """Return a working tree as the folder of a loop (`Loop.cwd`): "" for the project itself."""
        return "" if root == self.project else str(root)

    def prefix_of(self, root: Path) -> str:
        """Return what makes the ID of a loop unique among all working trees: "" for a loop of the project itself."""
        return "" if root == self.project else f"{root}/"

    def private(self, variable: str, default: str) -> Path | None:
        """Return an agent's private folder: that of an environment variable, else `default` below the home folder."""
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
