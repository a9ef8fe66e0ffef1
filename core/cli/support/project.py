"""From the command line to an open project."""

from __future__ import annotations

import getpass
import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from core.base.errors import ProjectNotFound
from core.cli.support.options import Invocation
from core.config.paths import ProjectPaths, find_project, is_folder, project_at
from core.config.settings import Settings, WatchSettings
from core.storage.read_only import protect

if TYPE_CHECKING:
    from core.project.index import Library
    from core.project.project import Project
    from core.records.snapshot import Snapshot
    from core.sources.configuration import Configuration


def now() -> datetime:
    """The present moment."""
    return datetime.now(UTC)


def named_project() -> Path | None:
    """What `--project` or else the environment names."""
    named = click.get_current_context().ensure_object(Invocation).project
    from_environment = os.environ.get("RALPHDECK_PROJECT")
    return named or (Path(from_environment) if from_environment else None)


def chosen_project() -> ProjectPaths:
    """The named project, else the nearest one at or above the current folder."""
    named = named_project()
    return guarded(project_at(named) if named is not None else find_project(Path()))


def is_readonly() -> bool:
    """Whether nothing is to be written: `--readonly`, or else the environment, said so."""
    return click.get_current_context().ensure_object(Invocation).readonly


def guarded(project: ProjectPaths) -> ProjectPaths:
    """A project, in which from now on nothing is written if so it was wanted."""
    if is_readonly():
        protect(project.aiwg)
    return project


def read_configuration(*, registry: bool = False) -> Configuration:
    """The settings of the chosen project.

    Args:
        registry: Also look for a pruning policy in the registry, which reads the pattern files.
    """
    from core.sources.configuration import Configuration

    project = chosen_project()
    found = Configuration.read(project)
    return found.with_registry(project) if registry else found


def read_snapshot(configuration: Configuration | None = None) -> Snapshot:
    """All records of the chosen project; for commands that need no scores.

    Args:
        configuration: Of the project; it is read if none is given.
    """
    from core.project.index import Library

    configuration = configuration or read_configuration()
    settings = configuration.settings
    library = Library(chosen_project(), settings, clock=now, findings=configuration.findings)
    library.load()
    _read_torn_again(library, library.apply, settings.watch)
    return library.snapshot


def open_deck(by: str | None = None, *, records: bool = False, configuration: Configuration | None = None) -> Project:
    """The chosen project with scores, loaded.

    Args:
        by: Who decides; the environment or the system tells otherwise.
        records: Whether something is to be written down there, whatever is known already.
        configuration: Of the project; it is read if none is given.

    Raises:
        ProjectNotFound: There is no such project; to record something, it must have an `.aiwg`.
    """
    from core.project.project import Project

    project = chosen_project()
    if records and not is_folder(project.aiwg):
        raise ProjectNotFound(f"no .aiwg in {project.project}; name a project with --project")
    configuration = configuration or read_configuration(registry=True)
    settings = configuration.settings
    deck = Project(
        project,
        settings,
        by=by or decider(settings),
        clock=now,
        findings=configuration.findings,
        readonly=is_readonly(),
    )
    deck.agent = os.environ.get("RALPHDECK_AGENT", "").strip()
    deck.load()
    _read_torn_again(deck.library, deck.apply, settings.watch)
    return deck


def _read_torn_again(library: Library, apply: Callable[[Iterable[Path]], object], settings: WatchSettings) -> None:
    """Give files that are being written the time to become whole; what stays torn becomes a finding."""
    from core.project.index import UNREADABLE_AFTER

    for delay in (*settings.retry_seconds, UNREADABLE_AFTER.total_seconds()):
        torn = library.retry_paths
        if len(torn) == len(library.snapshot.unreadable):
            return
        time.sleep(delay)
        apply(torn)


def decider(settings: Settings | None = None) -> str:
    """The name that decisions are signed with, see `named_decider`; by default with the settings of the project."""
    return named_decider(settings or read_configuration().settings)[0]


def named_decider(settings: Settings) -> tuple[str, str]:
    """The name that decisions are signed with, and what says so: the environment, the settings, else the system."""
    if name := os.environ.get("RALPHDECK_USER", "").strip():
        return name, "$RALPHDECK_USER"
    if settings.curation.actor:
        return settings.curation.actor, "curation.actor"
    try:
        return getpass.getuser(), "the system"
    except (KeyError, OSError, ImportError):
        return f"uid {os.getuid()}", "the system"
