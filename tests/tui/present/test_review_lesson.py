"""A question about a lesson names the agents' own files that say the same."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from core.adapters.agent_files import AgentFile
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.demo.sample import copy_sample
from core.project.project import Project
from core.questions.answers import answer
from core.retrieval.similarity import Repetition
from core.show.contexts import Preview
from tests.agent_lessons import add_lessons, lesson_questions, make_agent_lesson
from tui.present import review
from tui.present.glyphs import DRAWN

NOW = datetime(2026, 2, 4, tzinfo=UTC)
RULE = "Use uv, not pip, to install dependencies."
FILES = (
    AgentFile(agents=("Claude Code",), file="CLAUDE.md", lines=("# Shop", f"- {RULE}", "- Never edit dist"), loaded=3),
    AgentFile(agents=("Codex",), file="AGENTS.md", lines=(f"- {RULE}",), loaded=0),
)


def test_a_repeated_lesson_is_marked_in_review_and_as_a_pattern_in_context(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    add_lessons(project, make_agent_lesson(RULE, at=NOW))
    (item,) = lesson_questions(project)
    plain, marked = (
        "\n".join(one.plain for one in review.sides(project.view, item, desk)[2])
        for desk in (
            review.Desk(glyphs=DRAWN, key=lambda action: action),
            review.Desk(glyphs=DRAWN, key=lambda action: action, agent_files=FILES),
        )
    )
    assert "by themselves" not in plain
    assert "Agents load the same text by themselves:\n  CLAUDE.md:2" in marked
    assert "AGENTS.md" not in marked, "an agent does not read that far"
    chosen = answer(item, project.view, "accept")
    assert chosen is not None
    project.decide(chosen.command)
    (made,) = project.lessons()[0].patterns
    found = Preview.prepare(project.view, RULE, project.settings.injection, FILES)
    assert found.repeated[made] == Repetition("CLAUDE.md", 2)
