"""`ralphdeck init`: begin a project in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from core.base.errors import BadInput, ReadOnly, Unwritable
from core.cli.render.output import line, remark, respond
from core.cli.support.options import Command
from core.cli.support.project import is_readonly, named_project
from core.config.paths import ProjectPaths, project_at

_IGNORED: Final = """\
# Private to this machine: sessions, actions of agents, computed vectors, locks and drafts. Share the rest of .aiwg.
/.aiwg/ralph/sessions/
/.aiwg/ralph/tasks/*/attempts/*/actions.jsonl
/.aiwg/ralph/memory/embeddings/
/.aiwg/ralph/index/embeddings/
/.aiwg/**/*.lock
/.aiwg/**/.*.tmp-*
/.aiwg/**/*.torn-*
/.aiwg/**/*.displaced-*"""


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
    project = _choose_project(folder)
    if is_readonly():
        raise ReadOnly("read-only: nothing is written; start without --readonly and RALPHDECK_READONLY")
    is_new = _make_folder(project)
    root = _git_root(project.project)
    is_ignored = _add_ignored(project.project) if root is not None else False

    def show() -> None:
        line(f"Project in {project.aiwg}" if is_new else f"The project in {project.aiwg} exists already")
        if is_ignored:
            line("Added the private files to .gitignore; commit .aiwg to share patterns and decisions with your team")
        if root is None:
            remark("Not in a Git repository; after git init, run ralphdeck init again to keep private files out of it")
        line("Next: ralphdeck connect claude   (or codex, gemini, cursor, copilot, opencode)")

    respond("InitDocument", show, project=str(project.project), created=is_new, ignored=is_ignored)


def _choose_project(folder: Path | None) -> ProjectPaths:
    named = folder or named_project()
    if named is not None:
        return project_at(named)
    here = project_at(Path())
    return ProjectPaths(_git_root(here.project) or here.project)


def _git_root(folder: Path) -> Path | None:
    """Return the root of the Git work tree that contains a folder, None outside of one."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def _make_folder(project: ProjectPaths) -> bool:
    """Make `.aiwg/ralph`; returns whether it is new."""
    is_new = not project.ralph.is_dir()
    try:
        project.ralph.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unwritable(f"cannot make {project.ralph}: {error.strerror}") from None
    return is_new


def _add_ignored(folder: Path) -> bool:
    """Add the block of private files to `.gitignore`; returns whether the file changed."""
    from core.agents.managed_text import Block
    from core.agents.plan import read_part
    from core.storage.atomic_write import rewrite, take_theirs

    file = folder / ".gitignore"
    block = Block(_IGNORED, "# ", "")
    try:
        data = read_part(file, folder)
        merged = block.merge(data)
    except BadInput as error:
        raise BadInput(f"{file}: {error}") from None
    if merged == data:
        return False
    rewrite(file, lambda present: block.merge(present), merge=take_theirs, retry_seconds=())
    return True
