"""Opens the project of the command line, now or as of a moment; completes IDs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from core.base.errors import BadInput, ProjectNotFound, UnknownRecord
from core.base.formatting import parse_past_time
from core.base.paths import SAFE_ID, ProjectPaths, find_project, is_folder, project_at
from core.cli.support.options import DecidingCommand, ListingCommand, ReadingCommand, ReviewingCommand, invocation
from core.cli.support.output import remark, show_progress
from core.files.file_access import protect

if TYPE_CHECKING:
    from core.base.settings import Settings, WatchSettings
    from core.index.project_state import ProjectState
    from core.index.refresh import Index
    from core.project.project import Project
    from core.project.reader import ProjectReader
    from core.records.findings import Finding
    from core.records.loops import Loop
    from core.records.snapshot import Snapshot
    from core.sources.configuration import Configuration


_Reader = TypeVar("_Reader", bound="ProjectReader")


def now() -> datetime:
    return datetime.now(UTC)


def named_project() -> Path | None:
    """Return the value of `--project` or $RALPHDECK_PROJECT, or None."""
    named = invocation().project
    from_environment = os.environ.get("RALPHDECK_PROJECT")
    return named or (Path(from_environment) if from_environment else None)


def chosen_project() -> ProjectPaths:
    """Find the named or nearest project, or repository to read; or ProjectNotFound."""
    if (named := named_project()) is not None:
        return guarded(project_at(named))
    reads = isinstance(click.get_current_context().command, ReadingCommand | ListingCommand)
    return guarded(find_project(Path(), or_repository=reads))


def is_readonly() -> bool:
    return invocation().readonly


def guarded(project: ProjectPaths) -> ProjectPaths:
    """Return the command's project; with `--readonly` it is protected from writes."""
    invocation().folder = project.project
    if is_readonly():
        protect(project.aiwg)
    return project


def read_configuration(*, registry: bool = False) -> Configuration:
    """Read the settings; with `registry` also the pruning policy in pattern files."""
    from core.sources.configuration import Configuration

    project = chosen_project()
    found = Configuration.read(project)
    return found.with_registry(project) if registry else found


def read_snapshot(configuration: Configuration | None = None, *, adapted: bool = False) -> Snapshot:
    """Read all records without scores; if None, also read the configuration.

    With `adapted`, read the loops and lessons of agents and other runners, too.
    """
    from core.index.refresh import Index

    configuration = configuration or read_configuration()
    settings = configuration.settings
    index = Index(chosen_project(), settings, clock=now, findings=configuration.findings)
    index.load()
    _retry_incomplete(index, index.refresh, settings.watch)
    if adapted:
        from core.project.adapter_files import AdapterFiles

        with closing(AdapterFiles(chosen_project(), settings, now).open_collector()) as collector:
            index.replace_adapted(collector.read_all())
    return index.snapshot


def open_project(*, records: bool = False, configuration: Configuration | None = None, asks: bool = True) -> Project:
    """Load the chosen project with scores; if None, also read the configuration.

    Loops and lessons of agents and other runners are read, too, unless the command records something or has no
    review questions, so that such a command is fast.

    With `records`, the command will record something, so a folder `.aiwg` must exist. Raises ProjectNotFound if
    there is no project or no such folder. Without `asks` there are no review questions.
    """
    configuration = configuration or read_configuration(registry=True)
    opened = create_project(configuration, records=records, asks=asks)
    load_project(opened)
    if asks and not records:
        opened.read_adapted()
    return opened


def open_reader(*, reads_agents: bool) -> ProjectReader:
    """Load the chosen project without the imports for deciding and recording.

    With `reads_agents`, read the loops and lessons of agents and other runners, too. There are no review questions.
    """
    from core.project.reader import ProjectReader

    opened = _create(ProjectReader, read_configuration(registry=True), asks=False)
    load_project(opened)
    if reads_agents:
        opened.read_adapted()
    return opened


def find_loop(project: ProjectReader, loop_id: str) -> Loop:
    """Return a loop by ID; if not in `.aiwg`, read the files of agents and runners."""
    try:
        return project.view.loop(loop_id)
    except UnknownRecord:
        project.read_adapted()
        return project.view.loop(loop_id)


def create_project(configuration: Configuration, *, records: bool = False, asks: bool = True) -> Project:
    """Return the chosen project without its records; see `open_project`."""
    from core.project.project import Project

    if isinstance(click.get_current_context().command, DecidingCommand | ReviewingCommand):
        warn_of_user_settings()
    if records:
        require_records()
    opened = _create(Project, configuration, asks=asks)
    opened.began = begin_project
    return opened


def _create(kind: type[_Reader], configuration: Configuration, *, asks: bool) -> _Reader:
    settings = configuration.settings
    opened = kind(
        chosen_project(),
        settings,
        by=decider(settings),
        clock=now,
        findings=configuration.findings,
        readonly=is_readonly(),
        asks=asks,
    )
    click.get_current_context().call_on_close(opened.adapters.close)
    opened.agent = os.environ.get("RALPHDECK_AGENT", "").strip()
    return opened


def warn_of_user_settings() -> None:
    """Warn of invalid user settings; scripts and evidence then follow the defaults."""
    from core.base.user_settings import read_user_settings
    from core.cli.support.output import warn

    warn(*(f"{finding.file}: {finding.message}" for finding in read_user_settings().findings))


def require_records() -> None:
    """Raise ProjectNotFound without a folder `.aiwg`, into which commands record."""
    project = chosen_project()
    if not is_folder(project.aiwg):
        raise ProjectNotFound(f"no .aiwg in {project.project}; name a project with --project")


def begin_project(folder: Path) -> str:
    """Trust a new `.aiwg`, keep its private files out of Git; return a note."""
    from core.agents.setup import ignore_in_new_project
    from core.cli.support.signature import trust_here

    trust_here(ProjectPaths(folder), "a first decision", now())
    return ignore_in_new_project(folder)


def load_project(project: ProjectReader) -> None:
    """Read a project's records; in a terminal, show the progress if it takes long."""
    with show_progress() as progress:
        project.load(lambda done, total: progress("reading files" if total else "finding files", done, total))
    _retry_incomplete(project.index, project.apply, project.settings.watch)


def _retry_incomplete(index: Index, apply: Callable[[Iterable[Path]], object], settings: WatchSettings) -> None:
    """Read incomplete files again; files that stay incomplete become findings."""
    from core.index.step import UNREADABLE_AFTER

    for delay in (*settings.retry_seconds, UNREADABLE_AFTER.total_seconds()):
        paths = index.retry_paths
        if len(paths) == len(index.snapshot.unreadable):
            return
        time.sleep(delay)
        apply(paths)


def reporter(settings: Settings) -> str:
    """Return who reports evidence: the chosen name, else the signature of decisions."""
    from core.cli.support.signature import find_reporter

    return find_reporter(invocation().by, settings).by or decider(settings)


def decider(settings: Settings | None = None) -> str:
    """Return the signature of decisions in this process."""
    from core.cli.support.signature import find_signature

    return find_signature(invocation().by, settings or read_configuration().settings).by


def _completer(*kinds: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Complete the IDs of records, except IDs that a shell would interpret."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        try:
            with ctx.scope(cleanup=False):
                return [one for one in _read_ids(*kinds) if one.startswith(incomplete) and SAFE_ID.fullmatch(one)]
        except Exception:  # completion must not print errors
            return []

    return complete


def _read_ids(*kinds: str) -> Iterable[str]:

    if kinds == ("tasks",):  # needs only one folder
        from core.tasks.task_files import task_ids

        return task_ids(chosen_project())
    snapshot = read_snapshot(adapted="lessons" in kinds)
    return (one for kind in kinds for one in getattr(snapshot, kind))


complete_lesson: Final = _completer("lessons")
complete_loop: Final = _completer("loops")
complete_pattern: Final = _completer("patterns")
complete_session: Final = _completer("debug_sessions")
complete_source: Final = _completer("loops", "tasks", "debug_sessions")
complete_task: Final = _completer("tasks")
complete_work: Final = _completer("loops", "attempts")


class PastMoment(click.ParamType[datetime]):
    """A past moment; with `end_of_day` a date means the end of that day."""

    name = "date"

    def __init__(self, *, end_of_day: bool) -> None:
        self._end_of_day = end_of_day

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        try:
            return parse_past_time(str(value), now(), end_of_day=self._end_of_day)
        except BadInput as error:
            self.fail(str(error), param, ctx)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return "DATE|7d"


as_of_option: Final = click.option(
    "--as-of", type=PastMoment(end_of_day=True), help="Show the state at that time, or at the end of that day."
)


def state_as_of(when: datetime | None) -> ProjectState:
    """Load the state of the chosen project, now or at a past moment."""
    state = open_reader(reads_agents=True).view
    if when is None:
        return state
    from core.project.as_of import build_past_state  # most commands show the present

    return build_past_state(state, when)


def remark_undated(findings: Iterable[Finding]) -> None:
    from core.project.as_of import UNDATED

    for finding in findings:
        if finding.code == UNDATED:
            remark(finding.message)
