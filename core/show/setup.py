"""How far a project is set up, in words: its folder, connected agents, trust, and sessions to learn from."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from core.agents.agent_table import AGENTS
from core.base.text import plural
from core.config.ownership import is_in_trusted_path
from core.config.paths import is_folder
from core.index.records import RecordMap
from core.state.review_items import OFFER

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths
    from core.records.loops import Loop
    from core.state.project_state import ProjectState
    from core.state.review_items import ReviewItem

SHOWN_SPAN: Final = timedelta(days=30)  # sessions of this time are counted before anything is learned
MOST_PROPOSED: Final = 20  # sessions from which lessons are proposed at once, the best ones
_MOST_COUNTED: Final = 1_000
_PURPOSES: Final = {
    "hooks": "hooks that record sessions and give lessons",
    "mcp": "the MCP server, so that the agent can ask for lessons",
    "instructions": "how the agent uses them",
    "skill": "the skill ralphdeck",
}


class Setup(Struct, frozen=True, kw_only=True):
    """How far a project is set up.

    `connected` are titles of agents. `writes` are the files that connecting `agent`, which is in use, would write, each
    with its purpose; empty if an agent is connected. `hooks` says how the hooks answer, "" if that is not known.
    """

    has_folder: bool = True
    connected: tuple[str, ...] = ()
    agent: str = ""
    writes: tuple[tuple[str, str], ...] = ()
    is_trusted: bool = True
    hooks: str = ""
    has_hook_problem: bool = False


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


def describe_empty(connected: Sequence[str], *, has_sessions: bool = False) -> str:
    """Return why a list of sessions or lessons is empty; `connected` are the titles of agents."""
    if has_sessions:
        return "No lesson yet. One is found when a failing check passes after a change"
    if connected:
        return f"Connected: {', '.join(connected)}. No session yet"
    return "No session yet. To connect an agent: ralphdeck start. To look around: ralphdeck demo"


def find_offers(state: ProjectState) -> tuple[ReviewItem, ...]:
    """Return the sessions from which lessons can be proposed, best first; those found so far."""
    if state.snapshot.as_of is not None:
        return ()
    return tuple(item for item in state.queue if item.kind == OFFER and item.offer is not None and item.offer.new)


def is_first_start(state: ProjectState) -> bool:
    """Return whether agents have left sessions of the last 30 days, but nothing was learned or decided yet."""
    snapshot = state.snapshot
    is_new = not snapshot.patterns and not snapshot.curation.undoable
    return is_new and any(loop.is_agent_session for loop in _recent(state))


def count_sessions(state: ProjectState) -> int:
    """Return the number of sessions of agents of the last 30 days, at most 1,000."""
    return sum(loop.is_agent_session for loop in _recent(state))


def _recent(state: ProjectState) -> Sequence[Loop]:
    begin, loops = state.now - SHOWN_SPAN, state.snapshot.loops
    if isinstance(loops, RecordMap):
        return loops.placed_since(begin, _MOST_COUNTED)
    return [loop for loop in loops.values() if loop.started_at is not None and loop.started_at >= begin]


def offers_text(offers: Sequence[ReviewItem], *, is_searching: bool) -> str:
    """Describe what can be learned: `9 fixes could become lessons: about 4 minutes to read`."""
    count = sum(len(item.offer.new) for item in offers if item.offer is not None)
    if not count:
        return "looking for fixes in them" if is_searching else "no fix in them could become a lesson"
    minutes = max(round(sum(item.seconds for item in offers) / 60), 1)
    more = " so far" if is_searching else ""
    lessons = "a lesson" if count == 1 else "lessons"
    return f"{plural(count, 'fix', 'fixes')} could become {lessons}{more}: about {plural(minutes, 'minute')} to read"
