"""Trust the projects that this user worked on with a version that did not ask (docs/safety.md#trusted-projects)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec
from tinydb import where

from core.base.errors import RalphdeckError
from core.config.ownership import is_in_trusted_path, why_not_used
from core.config.paths import ProjectPaths, find_project
from core.project.kept_view import read_kept_decisions
from core.records.times import iso
from core.storage.user_store import UserStore
from core.storage.user_tables import state_file
from core.team.consent import read_consent
from core.trust.origins import Origins
from core.trust.projects import MIGRATION, MIGRATIONS, find_answer, save_answer


def migrate_trust(dashboard: Path, connected_files: Iterable[str], now: datetime) -> None:
    """Trust each project that the user opened in the dashboard, connected to an agent or joined to a team.

    `dashboard` is the file of an earlier version with the projects that were opened, which may be missing;
    `connected_files` are the paths of files of agents that were changed. Of the decision log, the decisions that this
    machine had seen when it last showed the project stay own ones; later ones are asked about. Raises Unwritable.
    """
    for folder in sorted(set(_used_folders(dashboard, connected_files))):
        paths = ProjectPaths(folder)
        is_usable = paths.aiwg.is_dir() and not why_not_used(folder)
        if not is_usable or is_in_trusted_path(folder) or find_answer(paths) is not None:
            continue
        with suppress(RalphdeckError):  # a project that cannot be written is asked about
            Origins(folder).add_decisions(read_kept_decisions(folder))
            save_answer(paths, MIGRATION, now)
    with UserStore(state_file()).transaction() as tables:
        tables.table(MIGRATIONS).upsert({"name": MIGRATION, "at": iso(now)}, where("name") == MIGRATION)


def _used_folders(dashboard: Path, connected_files: Iterable[str]) -> Iterator[Path]:
    with suppress(OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        values = msgspec.json.decode(dashboard.read_bytes(), type=dict[str, msgspec.Raw])
        projects = values.get("projects", msgspec.Raw(b"{}"))
        yield from map(Path, msgspec.json.decode(projects, type=dict[str, msgspec.Raw]))
    with suppress(RalphdeckError):
        yield from map(Path, read_consent())
    for name in connected_files:
        with suppress(RalphdeckError):
            yield find_project(Path(name).parent).project
