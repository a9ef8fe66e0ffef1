"""`ralphdeck init`: begin a project in a folder."""

from __future__ import annotations

from pathlib import Path

import click

from core.agents.setup import git_root, ignore_private_files
from core.base.errors import ReadOnly, Unwritable
from core.base.paths import ProjectPaths, project_at
from core.cli.json import setup as setup_json
from core.cli.render.output import line, print_object, remark, wants_json
from core.cli.support.options import Command
from core.cli.support.project import is_readonly, named_project, now
from core.cli.support.trust import trust_here


@click.command(cls=Command)
@click.argument("folder", required=False, type=click.Path(path_type=Path))
def init(folder: Path | None) -> None:
    """Begin a project: make .aiwg/ralph in a repository, and add what is private to .gitignore.

    FOLDER is the project. Default: the root of the Git repository of the current folder, else the current folder. Can
    be repeated; what exists stays as it is.

    \b
    Example:
      ralphdeck init && ralphdeck connect claude
    """
    if folder is not None and named_project() is not None and folder.absolute() != named_project():
        raise click.UsageError("give either FOLDER or --project")
    project = choose_project(folder)
    if is_readonly():
        raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
    is_new = make_folder(project)
    root = git_root(project.project)
    is_ignored = ignore_private_files(project.project)
    brought = trust_here(project, "init", now())

    if wants_json():
        print_object(setup_json.InitDocument, project=str(project.project), created=is_new, ignored=is_ignored)
    else:
        line(f"Project in {project.aiwg}" if is_new else f"The project in {project.aiwg} exists already")
        if is_ignored:
            line("Added the private files to .gitignore; commit .aiwg to share patterns and decisions with your team")
        if root is None:
            remark("Not in a Git repository; after git init, run ralphdeck init again to keep private files out of it")
        if brought:
            line(f"Trusted, with what it contains: {brought}; to look at it: ralphdeck trust --show")
        line("Next: ralphdeck connect claude   (or codex, gemini, cursor, copilot, opencode)")


def choose_project(folder: Path | None) -> ProjectPaths:
    """Return the named project, else the root of the Git repository of the current folder, else that folder."""
    named = folder or named_project()
    if named is not None:
        return project_at(named)
    here = project_at(Path())
    return ProjectPaths(git_root(here.project) or here.project)


def make_folder(project: ProjectPaths) -> bool:
    """Make `.aiwg/ralph`; returns whether it is new. Raises Unwritable."""
    is_new = not project.ralph.is_dir()
    try:
        project.ralph.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make {project.ralph}: {error.strerror}") from None
    return is_new
