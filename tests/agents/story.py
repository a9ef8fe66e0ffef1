"""Everything that is tested of an agent: connect it, let it work in five sessions, disconnect it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.agents.scenarios import MODULE
from tests.agents.workbench import AgentSession, Workbench, wait_until

TASK: Final = "Make the failing test of the cart pass"
SAME_TASK: Final = "A test of the cart fails, fix the cart"
OTHER_TASK: Final = "Write the release notes of the website"
QUESTION: Final = "What does a cart do?"
PROMPTS: Final = {"given up": TASK, "fixed": TASK, "next": SAME_TASK, "other": OTHER_TASK, "asked": QUESTION}
"""The sessions by their names, in their order."""
_SCENARIOS: Final = {"given up": "give-up", "asked": "chat"}
_SCENARIOS_WITHOUT_HOOKS: Final = {**_SCENARIOS, "other": "look-up"}
_PRIVATE: Final = (".git", ".aiwg", "__pycache__", ".pytest_cache")


@dataclass
class Story:
    """What was seen, in the order of the fields."""

    bench: Workbench
    before: dict[str, bytes]
    """Files of the project without an agent."""
    connected: dict[str, bytes]
    checked: int
    """Exit code of `connect --check`."""
    connected_again: dict[str, bytes]
    sessions: dict[str, AgentSession] = field(default_factory=dict)
    worked_on: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The task that changed last, after each session."""
    learned: list[dict[str, Any]] = field(default_factory=list)
    """Patterns after the first fix."""
    lesson: str = ""
    """The text of the first one."""
    loops: list[dict[str, Any]] = field(default_factory=list)
    patterns: list[dict[str, Any]] = field(default_factory=list)
    disconnected: dict[str, bytes] = field(default_factory=dict)

    def loop(self, session: str) -> dict[str, Any]:
        """The row of a session in `loop list`."""
        position = list(self.sessions).index(session)
        rows = sorted(self.loops, key=lambda row: str(row["started_at"]))
        assert len(rows) == len(self.sessions), [row["id"] for row in rows]
        return rows[position]


def files(project: Path) -> dict[str, bytes]:
    """Return the content of all files of a project that an agent's connection may change."""
    paths = [path for path in project.rglob("*") if path.is_file() and not set(path.parts) & set(_PRIVATE)]
    return {str(path.relative_to(project)): path.read_bytes() for path in paths if path.name != MODULE}


def play(bench: Workbench) -> Story:
    """Play the whole story of an agent."""
    bench.ralphdeck("init")
    before = files(bench.project)
    bench.ralphdeck("connect", bench.name, "--yes")
    connected = files(bench.project)
    checked = bench.exit_code("connect", bench.name, "--check")
    bench.ralphdeck("connect", bench.name, "--yes")
    story = Story(bench, before, connected, checked, files(bench.project))
    scenarios = _SCENARIOS if bench.agent.events else {**dict.fromkeys(PROMPTS, "report"), **_SCENARIOS_WITHOUT_HOOKS}
    for name, prompt in PROMPTS.items():
        bench.break_cart()
        story.sessions[name] = bench.run(prompt, scenarios.get(name, "fix"))
        if name == "fixed":
            story.learned = _learn(bench)
            story.lesson = "".join(bench.ralphdeck("pattern", "show", row["id"]) for row in story.learned)
        story.worked_on[name] = bench.newest_task()
    wait_until(lambda: len(bench.loops()) >= len(story.sessions), seconds=10)
    story.loops, story.patterns = bench.loops(), bench.patterns()
    bench.ralphdeck("connect", bench.name, "--remove", "--yes")
    story.disconnected = files(bench.project)
    return story


def _learn(bench: Workbench) -> list[dict[str, Any]]:
    """Return the patterns that were extracted in the background, or by hand where no hook does it."""
    if bench.agent.events:
        wait_until(lambda: bool(bench.patterns()))
    else:
        bench.extract_newest()
    return bench.patterns()
