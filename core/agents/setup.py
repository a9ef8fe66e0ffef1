"""State of a project's setup: folder, agents, trust, hooks; what Git ignores.

The dashboard imports this module when it starts, so it imports what reads the files of agents on use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from core.agents.agent_table import AGENTS
from core.base.errors import BadInput, RalphdeckError
from core.base.paths import ProjectPaths, is_folder, is_in_trusted_path
from core.files.file_access import PRIVATE_FOLDERS, is_ignored, secure_folders
from core.show.now import Setup

_PURPOSES: Final = {
    "hooks": "hooks that record sessions and give lessons",
    "mcp": "the MCP server, so that the agent can ask for lessons",
    "instructions": "how the agent uses them",
    "skill": "the skill ralphdeck",
}


def read_setup(paths: ProjectPaths) -> Setup:
    """Read agents' connections and what connecting would write; starts no process."""
    from core.agents.plan import Target, detect, find_connected, parts_of, plan_connect
    from core.trust.projects import is_trusted

    connected = find_connected(paths.project)
    agent, writes = "", dict[str, str]()
    if not connected:
        in_use = [*detect(paths.project)]
        agent = next((name for name in AGENTS if name in in_use), "")
        target = Target(paths.project)
        (plan,) = plan_connect([agent], target, {}) if agent else (None,)
        changed = {change.shown for change in plan.changes} if plan is not None else set()
        for part in parts_of(agent, target) if agent else ():
            if part.shown in changed and part.is_wanted:
                writes.setdefault(part.shown, _PURPOSES[part.kind])
    trusted = not paths.aiwg.exists() or is_trusted(paths) or is_in_trusted_path(paths.project)
    has_folder = is_folder(paths.aiwg)
    return Setup(
        has_folder=has_folder, connected=connected, agent=agent, writes=tuple(writes.items()), is_trusted=trusted
    )


def try_hooks(paths: ProjectPaths) -> tuple[str, bool]:
    """Run connected hooks with a sample event; return a text, and if it is a problem.

    Only hooks of this program are run, and they record nothing.
    """
    from core.agents.checks import find_program, installed_command, try_hook
    from core.agents.plan import Target
    from core.base.errors import BadInput

    try:
        program = find_program()
    except BadInput as error:
        return str(error), True
    slowest = 0.0
    for is_global in (False, True):
        target = Target(paths.project, program, is_global)
        for agent in AGENTS:
            if not (command := installed_command(agent, target)):
                continue
            answer = try_hook(agent, command, paths.project)
            if answer.problem:
                return f"the hook of {AGENTS[agent].title} {answer.problem}", True
            slowest = max(slowest, answer.seconds)
    return (f"hooks answer in {slowest:.1f} s", False) if slowest else ("", False)


# Files in `.aiwg` that stay out of Git: a managed block in `.gitignore`

_IGNORED: Final = """\
# Private to this machine. Tasks and debug sessions are, too, by a .gitignore in their folders. Share the rest.
/.aiwg/ralph/sessions/
/.aiwg/ralph/shared/team/
/.aiwg/ralph/tasks/*/attempts/*/actions.jsonl
/.aiwg/ralph/memory/embeddings/
/.aiwg/ralph/memory/patterns-index.json
/.aiwg/ralph/index/
/.aiwg/**/*.lock
/.aiwg/**/.*.tmp-*
/.aiwg/**/*.torn-*
/.aiwg/**/*.displaced-*"""


def git_root(folder: Path) -> Path | None:
    """Return the root of the Git work tree with a folder, None outside of one."""
    return next((place for place in (folder, *folder.parents) if (place / ".git").exists()), None)


def ignore_private_files(folder: Path) -> bool:
    """Add the private files to the `.gitignore` of a repository; True if it changed.

    Existing private folders get their own `.gitignore`, also outside of a repository.
    """
    for private in _private_folders(folder):
        secure_folders(private)
    if git_root(folder) is None:
        return False
    from core.files.atomic_write import rewrite, take_theirs
    from core.files.managed_text import Block, read_part

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


def is_ignoring(folder: Path) -> bool:
    """Return whether a folder is outside of Git or ignores what is private."""
    if git_root(folder) is None:
        return True
    if any(private.is_dir() and not is_ignored(private) for private in _private_folders(folder)):
        return False
    from core.files.managed_text import Block, read_part

    try:
        data = read_part(folder / ".gitignore", folder)
        return Block(_IGNORED, "# ", "").merge(data) == data
    except BadInput:
        return False


def _private_folders(folder: Path) -> list[Path]:
    return [ProjectPaths(folder).ralph / name for name in PRIVATE_FOLDERS]


def ignore_in_new_project(folder: Path) -> str:
    """Update `.gitignore` after a decision made `.aiwg`; return a note to the user."""
    try:
        is_changed = ignore_private_files(folder)
    except (RalphdeckError, OSError) as error:
        return f"made .aiwg, but its private files are not in .gitignore ({error}); see: ralphdeck init"
    return "made .aiwg, and added its private files to .gitignore" if is_changed else ""
