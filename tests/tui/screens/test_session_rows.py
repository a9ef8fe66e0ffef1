"""A session of a connected agent without a transcript, from its first prompt to what it left behind."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from core.agents.hooks import answer, background
from tests.core.agents.hooks.agents import EDIT, FAILING, PASSING, SimulatedAgent, make_project
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.text_pane import TextPane
from tui.screens.loops import LoopsScreen

PROMPT = "Fix the TypeError in the account page"
LOOP = "copilot:s2"


@pytest.fixture
def agents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SimulatedAgent, SimulatedAgent]:
    """Two sessions in a project with a connected agent; the first one has left a lesson."""
    monkeypatch.delenv("RALPHDECK_TASK", raising=False)
    monkeypatch.setattr(answer, "start_background", lambda paths: background.run(paths, NOW))
    project = make_project(tmp_path / "project")
    (project.project / ".claude").mkdir()
    (project.project / ".claude" / "settings.json").write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "ralphdeck hook --agent claude"}]}]}}'
    )
    before = NOW - timedelta(minutes=5)
    return SimulatedAgent(project, "s1", at=before), SimulatedAgent(project, "s2", "copilot", at=before)


def tab_number(user: User, name: str) -> int:
    """The place of a tab of the row under the cursor."""
    place = user.place
    assert isinstance(place, LoopsScreen)
    return place.tabs(user.table.cursor_key).index(name)


async def test_a_session_is_a_row_from_its_prompt_to_its_lesson(
    agents: tuple[SimulatedAgent, SimulatedAgent], home: Path
) -> None:
    first, second = agents
    async with open_dashboard(first.project.project, home, size=(160, 40)) as user:
        await user.sees("Connected: Claude Code. No session yet")
        first.prompt(PROMPT)
        first.fix_and_stop()
        await user.until(lambda: "claude:s1" in user.table.keys and "completed" in user.row("claude:s1"), "the session")
        second.send("UserPromptSubmit", prompt=PROMPT)
        await user.until(lambda: LOOP in user.table.keys and "running" in user.row(LOOP), "the second session")
        for name, fields in (("PostToolUse", FAILING), ("PostToolUse", EDIT), ("PostToolUse", PASSING)):
            second.send(name, tool_use_id=str(fields["tool_input"]), **fields)
        second.send("SessionEnd", reason="complete")
        await user.until(lambda: "completed" in user.row(LOOP), "its end")
        user.place.go_to(LOOP)
        for _ in range(tab_number(user, "Lessons")):
            await user.press("right_square_bracket")
        await user.settled()
        assert "pat-error" in user.place.query_one(TextPane).plain, "what it was given"
