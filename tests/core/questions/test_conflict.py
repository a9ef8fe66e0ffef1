"""Questions about instructions that contradict or repeat each other."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from core.base.paths import ProjectPaths
from core.base.settings import Settings, SourcesSettings
from core.base.steps import run_all
from core.decisions.commands import Undo
from core.index.review_items import CONFLICT, ReviewItem
from core.project.project import Project
from core.questions.conflict import MOST_QUESTIONS, find_conflicts
from core.questions.kinds import answer
from core.records.decisions import CurationState, verb_info
from core.records.instructions import Instruction, InstructionFile
from core.records.snapshot import Snapshot
from core.show.now import Setup, make_page
from tests.factories import NOW

TABS, SPACES = "Use tabs for indentation.", "Indent with 4 spaces."


def instructions(file: str, *texts: str, agent: str = "Codex") -> InstructionFile:
    found = tuple(Instruction(text, (n, n)) for n, text in enumerate(texts, 1))
    return InstructionFile(id=file, agents=(agent,), statements=found)


def view(*files: InstructionFile, settings: Settings | None = None) -> Any:
    snapshot = Snapshot(instructions={file.id: file for file in files}, curation=CurationState())
    return SimpleNamespace(
        snapshot=snapshot, board={}, settings=settings or Settings(), now=NOW, instruction_embeddings=None
    )


def test_the_number_of_questions_is_limited() -> None:
    names = [f"`tool{n}`" for n in range(3 * MOST_QUESTIONS)]
    files = (
        instructions("a.md", *(f"Use {name}." for name in names)),
        instructions("b.md", *(f"Never use {name}." for name in names)),
    )
    found = run_all(find_conflicts(view(*files)))
    assert len({pair.question for pair in found}) == MOST_QUESTIONS


def test_the_setting_switches_the_comparison_off() -> None:
    files = instructions("a.md", TABS), instructions("b.md", SPACES)
    assert run_all(find_conflicts(view(*files)))
    off = Settings(sources=SourcesSettings(instructions=False))
    assert run_all(find_conflicts(view(*files, settings=off))) == ()


def test_repeats_for_different_agents_are_not_asked_about() -> None:
    copy = "Never push to main."
    assert run_all(find_conflicts(view(instructions("a.md", copy), instructions("b.md", copy))))
    other = instructions("b.md", copy, agent="Gemini CLI")
    assert not run_all(find_conflicts(view(instructions("a.md", copy), other)))


class Desk:
    """A new project in which two files of agents contradict each other."""

    def __init__(self, folder: Path) -> None:
        (folder / "CLAUDE.md").write_text(f"- {TABS}\n")
        (folder / "AGENTS.md").write_text(f"- {SPACES}\n")
        self.project = Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False)
        self.project.load()
        self.project.read_adapted()

    def question(self) -> ReviewItem | None:
        self.project.search_all()
        return next((item for item in self.project.refresh()[0].queue if item.kind == CONFLICT), None)

    def give(self, action: str) -> str:
        """Give an answer; return the name of the decision."""
        item = self.question()
        assert item is not None
        found = answer(item, self.project.view, action)
        assert found is not None
        self.project.decide(found.command)
        return verb_info(self.project.refresh()[0].snapshot.decisions[-1]).past


def test_the_question_names_both_places(tmp_path: Path) -> None:
    item = Desk(tmp_path).question()
    assert item is not None
    assert "AGENTS.md:1" in item.asks and "CLAUDE.md:1" in item.asks


def test_each_answer_is_a_decision_of_its_own_that_can_be_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    for action, name in (("accept", "chose"), ("rewrite", "chose"), ("reject", "marked as fine")):
        assert desk.give(action) == name
        assert desk.question() is None
        desk.project.decide(Undo())
        assert desk.question() is not None


def test_the_chosen_instruction_is_known_until_a_text_changes(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.give("accept")
    (pair,) = desk.project.instruction_pairs().pairs
    chosen = pair.find_chosen(desk.project.view.snapshot.curation.dismissed)
    desk.project.decide(Undo())
    desk.give("rewrite")
    other = pair.find_chosen(desk.project.view.snapshot.curation.dismissed)
    assert chosen is not None and other is not None
    assert {chosen.place, other.place} == {"AGENTS.md:1", "CLAUDE.md:1"}


def test_conflicts_are_on_the_page_now_before_the_first_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.question()
    page = make_page(desk.project.refresh()[0], None, Setup())
    (line,) = next(section.lines for section in page.sections if section.id == "lessons")
    assert "AGENTS.md:1" in line.title and "CLAUDE.md:1" in line.title
