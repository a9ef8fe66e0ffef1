"""Reads how far a project is set up: its folder, connected agents, trust, and how the hooks answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from core.agents.agent_table import AGENTS
from core.base.ownership import is_in_trusted_path
from core.base.paths import is_folder
from core.show.now import Setup

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_PURPOSES: Final = {
    "hooks": "hooks that record sessions and give lessons",
    "mcp": "the MCP server, so that the agent can ask for lessons",
    "instructions": "how the agent uses them",
    "skill": "the skill ralphdeck",
}


def read_setup(paths: ProjectPaths) -> Setup:
    """Read the files that connect agents to a project, and what connecting an agent would write; starts no process."""
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
    """Run the hooks of the connected agents with a sample event; returns the result in words, and if it is a problem.

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
