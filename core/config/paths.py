"""Where everything lies under a project. An id becomes part of a path only after a check."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from core.base.errors import BadInput, ProjectNotFound

SAFE_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
PATTERN_FILES: Final = {
    "error": "error-patterns.json",
    "success": "success-patterns.json",
    "anti": "anti-patterns.json",
    "template": "code-templates.json",
}
"""(3) storage: the file each pattern type is written to."""


def safe_component(identifier: str) -> str:
    """`identifier` if it can be one path component, else `BadInput`."""
    if not SAFE_ID.fullmatch(identifier) or ".." in identifier:
        raise BadInput(f"id {identifier[:80]!r} cannot be part of a path: letters, digits, '.', '_', '-' only")
    return identifier


@dataclass(frozen=True, slots=True)
class ProjectPaths:
    """The folders and files of one project; none of them needs to exist."""

    project: Path

    @property
    def aiwg(self) -> Path:
        """`.aiwg`"""
        return self.project / ".aiwg"

    @property
    def ralph(self) -> Path:
        """`.aiwg/ralph`: internal loops, shared patterns, memory."""
        return self.aiwg / "ralph"

    @property
    def tasks(self) -> Path:
        """`.aiwg/ralph/tasks`: the episodic memory, a folder a task."""
        return self.ralph / "tasks"

    @property
    def task_index(self) -> Path:
        """`.aiwg/ralph/index`: the tasks by status and by agent."""
        return self.ralph / "index"

    @property
    def external(self) -> Path:
        """`.aiwg/ralph-external`: external loops."""
        return self.aiwg / "ralph-external"

    @property
    def patterns(self) -> Path:
        """`.aiwg/ralph/shared/patterns`: the registry."""
        return self.ralph / "shared" / "patterns"

    @property
    def archive(self) -> Path:
        """`.aiwg/ralph/shared/archive`: patterns that were pruned, a file a month."""
        return self.ralph / "shared" / "archive"

    @property
    def curation(self) -> Path:
        """`.aiwg/ralph/shared/curation`: ledger, event log, lock. Only ralphdeck writes here."""
        return self.ralph / "shared" / "curation"

    @property
    def ledger(self) -> Path:
        """The append-only journal of decisions."""
        return self.curation / "ledger.jsonl"

    @property
    def events(self) -> Path:
        """The append-only event log (semantics 1, source 1)."""
        return self.curation / "events.jsonl"

    def pattern_file(self, pattern_type: str) -> Path:
        """The file that a pattern of this type is written to."""
        return self.patterns / PATTERN_FILES[pattern_type]

    def relative(self, path: Path) -> str:
        """`path` relative to the project folder with `/` as separator, as records and findings name files."""
        return path.relative_to(self.project).as_posix()

    def inside(self, relative: str) -> Path:
        """The absolute path of a project-relative name, which must stay inside `.aiwg` (no `..`, no link out)."""
        try:
            path = (self.project / relative).resolve()
        except (OSError, RuntimeError, ValueError):  # links in a circle, NUL, half a surrogate pair
            raise BadInput(f"{relative[:120]!r} is no path") from None
        if not path.is_relative_to(self.aiwg.resolve()):
            raise BadInput(f"path {relative[:120]!r} leads out of {self.aiwg}")
        return path

    def unlinked(self, relative: str) -> Path:
        """Like `inside`, for what is to be written: below `.aiwg/ralph` no part of the path may be a link, since it
        could lead into files that are not those of the writer.
        """
        self.inside(relative)
        path = self.project / relative
        for part in (path, *path.parents):
            if part in (self.ralph, self.aiwg):
                break
            if part.is_symlink():
                raise BadInput(f"{self.relative(part)[:120]!r} is a link; nothing is written through it")
        return path


def relative_to_project(file: str, root: str) -> str:
    """A file name relative to the project folder `root` if it is inside, with `/` as separator and without `./`."""
    path = file.replace("\\", "/") if "\\" in file else file
    if root:
        path = path.removeprefix(f"{root.rstrip('/')}/") or path
    return path.removeprefix("./") or path


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; yes where only a permission keeps that from being seen."""
    try:
        return path.is_dir()
    except OSError:
        return True


def project_at(path: Path) -> ProjectPaths:
    """The project that `path` names: a project folder, its `.aiwg`, or its `.aiwg/ralph`. Nothing is created."""
    path = _absolute(path)
    if not is_folder(path):
        raise ProjectNotFound(f"{path} is not a folder; give a project folder, its .aiwg or its .aiwg/ralph")
    if path.name == "ralph" and path.parent.name == ".aiwg":
        return ProjectPaths(path.parent.parent)
    if path.name == ".aiwg":
        return ProjectPaths(path.parent)
    return ProjectPaths(path)


def find_project(start: Path) -> ProjectPaths:
    """The nearest project at or above `start` that has `.aiwg/ralph` or `.aiwg/ralph-external`."""
    start = _absolute(start)
    for folder in (start, *start.parents):
        paths = ProjectPaths(folder)
        if is_folder(paths.ralph) or is_folder(paths.external):
            return paths
    raise ProjectNotFound(f"no .aiwg/ralph at or above {start}; name a project with --project, or try: ralphdeck demo")


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except FileNotFoundError:
        raise ProjectNotFound(
            "the current folder does not exist any more; go to another one, or name a project by its full path"
        ) from None
    except RuntimeError:  # ~ of a user whom nobody knows
        raise ProjectNotFound(f"{path} names no home folder") from None
