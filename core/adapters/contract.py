"""The contract of an adapter, which reads the files of one agent or runner (docs/adapters.md#contract).

An adapter only reads, and only through `RunnerFiles`. It never changes, locks or creates a file of the runner.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from core.sources.liveness import Processes

if TYPE_CHECKING:
    from core.adapters.runner_files import RunnerFiles
    from core.records.lessons import Lesson
    from core.records.loops import Loop, LoopDetails


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

    def contain(self, folder: str) -> bool:
        """Return whether a session with this working folder belongs to the project."""
        path = Path(folder)
        return path.is_absolute() and ".." not in path.parts and any(path.is_relative_to(root) for root in self.roots)


class Places(Struct, frozen=True, kw_only=True):
    """Files and folders of a runner; folders include all below them.

    `watched` are in the project, where the system reports changes. `polled` are elsewhere, such as below the home
    folder, and are listed again at intervals.
    """

    watched: tuple[Path, ...] = ()
    polled: tuple[Path, ...] = ()


class Moment(Struct, frozen=True, kw_only=True):
    """The time of a look at the files, and the processes that run then."""

    now: datetime
    processes: Processes


class Delivery(Struct, frozen=True, kw_only=True):
    """The runner's own way to get a context, which a person carries out (docs/adapters.md#delivery).

    Either a `command` (words to run, no shell), or a `diff` (unified, of one of the runner's files) to apply.
    """

    explanation: str
    command: tuple[str, ...] = ()
    diff: str = ""


class Adapter(Protocol):
    """Reads the files of one agent or runner. Use one instance per project, from one thread.

    `name` is lower case, such as `codex`; the IDs of its loops are `name:` and the runner's own ID. `title` is for
    people. `versions` is the range of the runner's versions that it was written for. `contains` and `lacks` are for the
    table in the documentation: what the files contain, and what they do not.
    """

    name: str
    title: str
    versions: str
    contains: str
    lacks: str

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        """Return the files that show that this runner was used; () if none.

        Cheap: at most six `stat` calls and one read of 4 KiB; several runners share the folder `.ralph`, so the
        name of a folder does not show which one was used.
        """

    def places(self, folders: Folders) -> Places:
        """Return what to watch and what to poll."""

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        """Return all loops, with usage; called again after each change of a file."""

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        """Return iterations, notes and facts of one of its loops; called when a person looks at it."""

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        """Return what the files say was learned; nothing is used before a person accepts it."""

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        """Return how the runner itself can be given a context; None if only hooks reach it."""
