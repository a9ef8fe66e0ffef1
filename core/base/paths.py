"""Project paths (`.aiwg` in use) and user folders; only valid IDs go into paths."""

from __future__ import annotations

import os
import stat
import sys
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.base.errors import BadInput, ProjectNotFound
from core.base.regexes import lazy_regex

TRUSTED_PATHS: Final = "RALPHDECK_TRUSTED_PATHS"
"""Environment variable with folders in which all projects are trusted, separated as in `PATH`."""


def is_in_trusted_path(folder: Path) -> bool:
    """Return whether the user's environment trusts all projects in a folder."""
    return _is_in(str(folder), os.environ.get(TRUSTED_PATHS, ""))


@lru_cache(maxsize=256)
def _is_in(folder: str, trusted: str) -> bool:
    real = Path(os.path.realpath(folder))
    return any(
        real.is_relative_to(os.path.realpath(one)) for one in trusted.split(os.pathsep) if one.startswith(os.sep)
    )


def is_own(status: os.stat_result) -> bool:
    """Return whether a file is this user's or root's; under sudo, also the caller's."""
    owners = {os.geteuid(), 0}
    if os.geteuid() == 0 and (caller := os.environ.get("SUDO_UID", "")).isdigit():
        owners.add(int(caller))
    return status.st_uid in owners


def why_not_used(folder: Path) -> str:
    """Return why a project folder's `.aiwg` is not used; "" if it is or is missing."""
    aiwg = folder / ".aiwg"
    try:
        status = aiwg.lstat()
        parent = folder.stat()
    except OSError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"{aiwg} is a link; make it a folder"
    if is_in_trusted_path(folder):
        return ""
    if not is_own(status):
        return f"{aiwg} belongs to another user; if you trust that user, name the folder in ${TRUSTED_PATHS}"
    if status.st_dev != parent.st_dev:
        return f"{aiwg} is on another file system; if you trust it, name the folder in ${TRUSTED_PATHS}"
    return ""


SAFE_ID: Final = lazy_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
PATTERN_FILES: Final = {
    "error": "error-patterns.json",
    "success": "success-patterns.json",
    "anti": "anti-patterns.json",
    "template": "code-templates.json",
}  # file that each pattern type is written to

_GIT_FILE_SIZE: Final = 4096  # characters read of a file `.git`
BEGIN_COMMAND = "ralphdeck init"  # creates `.aiwg/ralph` in the folder that follows


def is_safe_id(identifier: str) -> bool:
    """Return whether `identifier` is a valid path component."""
    return SAFE_ID.fullmatch(identifier) is not None and ".." not in identifier


def safe_component(identifier: str) -> str:
    """Return `identifier` if it is a valid path component, else raise `BadInput`."""
    if not is_safe_id(identifier):
        raise BadInput(f"id {identifier[:80]!r} cannot be part of a path: letters, digits, '.', '_', '-' only")
    return identifier


class _Below:
    """Property of `ProjectPaths`: a path below another of its properties."""

    def __init__(self, folder: str, name: str) -> None:
        self._folder, self._name = folder, name

    def __get__(self, paths: ProjectPaths, _owner: type) -> Path:
        folder: Path = getattr(paths, self._folder)
        return folder / self._name


class ProjectPaths(Struct, frozen=True):
    """Folders and files of one project; they need not exist."""

    project: Path

    aiwg = _Below("project", ".aiwg")
    ralph = _Below("aiwg", "ralph")  # internal loops, shared patterns, memory
    tasks = _Below("ralph", "tasks")  # episodic memory, one folder per task
    task_index = _Below("ralph", "index")  # tasks by status and by agent
    sessions = _Below("ralph", "sessions")  # records of agents' sessions, private to one machine
    external = _Below("aiwg", "ralph-external")  # external loops
    patterns = _Below("ralph", "shared/patterns")  # pattern files
    archive = _Below("ralph", "shared/archive")  # archived patterns, one file per month
    curation = _Below("ralph", "shared/curation")  # written only by ralphdeck
    ledger = _Below("curation", "ledger.jsonl")  # the append-only decision log
    events = _Below("curation", "events.jsonl")  # the append-only event log (docs/file-formats.md)

    team = _Below("ralph", "shared/team")  # what a team's server knows, written only by ralphdeck
    team_evidence = _Below("team", "evidence.jsonl")  # sums of the uses in the team's other projects

    def pattern_file(self, pattern_type: str) -> Path:
        return self.patterns / PATTERN_FILES[pattern_type]

    def relative(self, path: Path) -> str:
        """Return `path` relative to the project, with `/`, as in records and findings."""
        return path.relative_to(self.project).as_posix()

    def inside(self, relative: str) -> Path:
        """Return the absolute path of a project-relative name; it must be inside `.aiwg`."""
        try:
            path = (self.project / relative).resolve()
        except (OSError, RuntimeError, ValueError):  # link loop, NUL, lone surrogate
            raise BadInput(f"{relative[:120]!r} is not a valid path") from None
        if not path.is_relative_to(self.aiwg.resolve()):
            raise BadInput(f"path {relative[:120]!r} is outside of {self.aiwg}")
        return path

    def unlinked(self, relative: str) -> Path:
        """Return the path from `inside` for writing; refuses links below `.aiwg/ralph`."""
        self.inside(relative)
        path = self.project / relative
        for part in (path, *path.parents):
            if part in (self.ralph, self.aiwg):
                break
            if part.is_symlink():
                raise BadInput(f"{self.relative(part)[:120]!r} is a link; nothing is written through it")
        return path


def relative_to_project(file: str, root: str) -> str:
    """Normalize a file name: relative to `root` if inside it, with `/`, without `./`."""
    path = file.replace("\\", "/") if "\\" in file else file
    if root:
        path = path.removeprefix(f"{root.rstrip('/')}/") or path
    return path.removeprefix("./") or path


def is_folder(path: Path) -> bool:
    """Return whether `path` is a folder; True if permissions prevent the check."""
    try:
        return path.is_dir()
    except OSError:
        return True


def project_at(path: Path) -> ProjectPaths:
    """Resolve a project folder, its `.aiwg` or its `.aiwg/ralph`; creates nothing.

    Raises ProjectNotFound if it is not a folder, or if its `.aiwg` is not one of this user (docs/safety.md#owners).
    """
    path = _absolute(path)
    if not is_folder(path):
        raise ProjectNotFound(f"{path} is not a folder; give a project folder, its .aiwg or its .aiwg/ralph")
    if path.name == "ralph" and path.parent.name == ".aiwg":
        path = path.parent.parent
    elif path.name == ".aiwg":
        path = path.parent
    if problem := why_not_used(path):
        raise ProjectNotFound(problem)
    return ProjectPaths(path)


def find_project(start: Path, *, or_repository: bool = False) -> ProjectPaths:
    """Find the nearest folder with `.aiwg/ralph*` from `start` up, in its repository.

    The home folder is found only if it is `start`. If there is none and `or_repository` is set, find the nearest Git
    repository: agents and other runners leave their files in any repository. Raises ProjectNotFound, also if the
    nearest `.aiwg` is not one of this user (docs/safety.md#owners).
    """
    start = _absolute(start)
    folders = _searched_folders(start)
    for folder in folders:
        paths = ProjectPaths(folder)
        if is_folder(paths.ralph) or is_folder(paths.external):
            if problem := why_not_used(folder):
                raise ProjectNotFound(problem)
            return paths
    if or_repository:
        for folder in folders:
            if (folder / ".git").exists():
                return ProjectPaths(folder)
    raise ProjectNotFound(
        f"not set up: no .aiwg/ralph at or above {start}; name a project with --project, or try: ralphdeck demo; "
        f"to begin in this folder: {BEGIN_COMMAND} ."
    )


def _searched_folders(start: Path) -> list[Path]:
    """Return `start` and its parents, up to its repository's top or below home.

    The search also ends where the folders belong to another user or are on another file system.
    """
    home = _home()
    found = [start]
    for folder in start.parents:
        if folder == home or _is_repository_top(found[-1]) or _is_border(folder, found[-1]):
            break
        found.append(folder)
    return found


def _is_border(folder: Path, below: Path) -> bool:
    """Return whether a folder has another owner than `below`, or another file system."""
    try:
        above, here = folder.stat(), below.stat()
    except OSError:
        return True
    is_same = above.st_dev == here.st_dev and above.st_uid in (here.st_uid, os.geteuid(), 0)
    return not is_same and not is_in_trusted_path(folder)


def _is_repository_top(folder: Path) -> bool:
    """Return whether a folder is the top of a Git working tree of its own.

    A worktree or submodule inside the working tree of its own repository belongs to that one.
    """
    entry = folder / ".git"
    if not entry.is_file():
        return entry.exists()
    try:
        with entry.open(encoding="utf-8") as file:
            kept_in = file.read(_GIT_FILE_SIZE).removeprefix("gitdir:").strip()
        repository = (folder / kept_in).resolve()
    except (OSError, RuntimeError, ValueError):  # no permission, link loop, not a text
        return True
    return not any(repository.is_relative_to((parent / ".git").resolve()) for parent in folder.parents)


def _home() -> Path | None:
    try:
        return Path.home()
    except RuntimeError:  # unknown
        return None


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except FileNotFoundError:
        raise ProjectNotFound(
            "the current folder was deleted; change to another one or give the full path of a project"
        ) from None
    except RuntimeError:  # ~ of an unknown user
        raise ProjectNotFound(f"{path}: unknown home folder; give a full path") from None


_APP: Final = "ralphdeck"
# On Linux the folders are those of the XDG specification. Importing platformdirs for them takes 5 ms in each hook.
_HAS_XDG: Final = sys.platform == "linux" and "ANDROID_ROOT" not in os.environ


def config_folder() -> Path:
    """Return the folder of settings and keys, which may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_CONFIG_HOME", "~/.config")
    from platformdirs import user_config_path

    return user_config_path(_APP)


def state_folder() -> Path:
    """Return the folder of the user's state, which may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_STATE_HOME", "~/.local/state")
    from platformdirs import user_state_path

    return user_state_path(_APP)


def cache_folder() -> Path:
    """Return the folder of files that may be deleted at any time; it may not exist."""
    if _HAS_XDG:
        return _xdg_folder("XDG_CACHE_HOME", "~/.cache")
    from platformdirs import user_cache_path

    return user_cache_path(_APP)


def _xdg_folder(variable: str, default: str) -> Path:
    """Return the program's folder in that of `variable`; relative paths are ignored.

    Raises BadInput if the home folder is not known: a relative one would be in the project, whose files would count as
    the user's.
    """
    named = os.environ.get(variable, "")
    folder = named if named.startswith("/") else os.path.expanduser(default)  # noqa: PTH111 (as platformdirs)
    if not folder.startswith("/"):
        raise BadInput(f"your home folder is not known: set HOME, or {variable}, to an absolute path")
    return Path(folder) / _APP
