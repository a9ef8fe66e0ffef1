"""Files in the user's cache folder: their names, and the version of the code that wrote them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from core.config.user_folders import cache_folder, config_folder

_CORE: Final = Path(__file__).parents[1]


def project_key(project: Path) -> str:
    """Return the name of the files of a project in the folders of the user."""
    return hashlib.sha256(str(project.resolve()).encode(errors="surrogateescape")).hexdigest()[:24]


def cache_path(project: Path, ending: str) -> Path:
    """Return the cache file of a project with this ending, in the user's cache folder."""
    return cache_folder() / f"{project_key(project)}.{ending}"


def team_file() -> Path:
    """Return the file with the projects that the user has joined to a team; see `core.team.consent`."""
    return config_folder() / "team.json"


def index_file(project: Path) -> Path:
    """Return the file of the index of a project; see `core.index`."""
    return cache_path(project, "index")


def code_digest(packages: Iterable[str]) -> bytes:
    """Return a digest that changes with the installed code of these packages of `core`."""
    digest = hashlib.sha256()
    folders = [str(_CORE / name) for name in packages]
    while folders:
        with os.scandir(folders.pop(0)) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name == "__pycache__":
                    continue
                if entry.is_dir():
                    folders.append(entry.path)
                else:
                    status = entry.stat()
                    digest.update(f"{entry.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.digest()


def code_version(packages: Iterable[str]) -> int:
    """Return `code_digest` as a version number of a database, 31 bits."""
    return int.from_bytes(code_digest(packages)[:4]) >> 1
