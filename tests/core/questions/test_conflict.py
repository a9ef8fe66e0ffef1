"""Instructions that contradict or repeat each other: pairs over all sources, and the questions about them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings, SourcesSettings
from core.base.steps import run_all
from core.decisions.commands import Undo
from core.index.review_items import CONFLICT, ReviewItem
from core.project.project import Project
from core.questions.conflict import MOST_QUESTIONS, choose_kept, find_conflicts, find_pairs_in_steps
from core.questions.kinds import answer
from core.records.decisions import CurationState, verb_info
from core.records.instructions import Instruction, InstructionFile, InstructionPair, PlacedInstruction, Relation
from core.records.snapshot import Snapshot
from core.show.cards import removal_diff
from core.show.now import Setup, make_page
from core.sources.adapters.agent_files import AgentFile
from tests.factories import NOW


def place(text: str, file: str = "CLAUDE.md", line: int = 1, **values: Any) -> PlacedInstruction:
    values = {"agents": ("Claude Code",), "id": values.get("pattern_id") or file} | values
    return PlacedInstruction(text=text, file=file, lines=(line, line), **values)


def find(*placed: PlacedInstruction) -> tuple[InstructionPair, ...]:
    return run_all(find_pairs_in_steps(placed)).pairs


TABS, SPACES = "Use tabs for indentation.", "Indent with 4 spaces."


def test_a_contradiction_between_two_files_is_found() -> None:
    (pair,) = find(place(TABS), place(SPACES, "AGENTS.md", 7))
    assert pair.relation is Relation.CONTRADICTS
    assert {one.place for one in pair.both} == {"CLAUDE.md:1", "AGENTS.md:7"}


def test_rules_for_different_files_do_not_contradict_each_other() -> None:
    typescript, python = ("**/*.ts",), ("**/*.py",)
    for one, other in ((typescript, python), ((), typescript)):
        assert not find(place(TABS, scope=one), place(SPACES, "b.md", scope=other))
    assert find(place(TABS, scope=typescript), place(SPACES, "b.md", scope=("**/*.tsx", "**/*.ts")))


def test_a_rule_that_repeats_a_general_one_is_superfluous() -> None:
    assert find(place(TABS), place(TABS, "b.md", scope=("**/*.ts",)))
    assert not find(place(TABS, scope=("**/*.py",)), place(TABS, "b.md", scope=("**/*.ts",)))


def test_sections_about_different_languages_do_not_contradict_each_other() -> None:
    assert not find(place(TABS, section="Go"), place(SPACES, line=9, section="Python"))
    assert find(place(TABS, section="Style"), place(SPACES, line=9, section="Python"))


def test_all_repeats_of_two_files_are_one_question_and_a_changed_text_is_another_one() -> None:
    texts = ["Run `npm test` before committing.", "Never push to main."]
    copies = [place(text, file, line) for file in ("a.md", "b.md") for line, text in enumerate(texts, 1)]
    questions = {pair.question for pair in find(*copies)}
    assert len(find(*copies)) == 2
    assert len(questions) == 1
    moved = [place(one.text, one.file, one.lines[0] + 5) for one in copies]
    assert {pair.question for pair in find(*moved)} == questions
    assert find(place("Run `npm test` before committing!", "a.md"), *copies[2:])[0].question not in questions


def test_a_pattern_is_dropped_rather_than_a_line_that_agents_load() -> None:
    (pair,) = find(place(TABS), place("Use tabs for indentation", id="p1", pattern_id="p1", agents=()))
    assert [one.place for one in choose_kept(pair)] == ["CLAUDE.md:1", "p1"]


def agent_file(file: str, *lines: str, **values: Any) -> AgentFile:
    return AgentFile(agents=("Claude Code",), file=file, lines=lines, loaded=len(lines), **values)


def test_the_diff_removes_a_line_or_a_sentence() -> None:
    file = agent_file("CLAUDE.md", "# Style", f"- {TABS}", "Be brief. Never push to main.")
    assert removal_diff(place(TABS, line=2), [file])[3:] == [" # Style", f"-- {TABS}", " Be brief. Never push to main."]
    diff = removal_diff(place("Never push to main.", line=3, is_whole=False), [file])
    assert diff[-2:] == ["-Be brief. Never push to main.", "+Be brief."]
    assert removal_diff(place("Gone.", line=3, is_whole=False), [file]) == []


def test_opposites_are_found_among_many_texts_with_the_same_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.questions.conflict._MAX_COMPARISONS", 4_000)
    others = [place(f"Run the npm test of module{n} before commit {n}.", "b.md", n) for n in range(90)]
    ends = place("Always run npm test before commit."), place("Never run npm test before commit.", "AGENTS.md")
    found = run_all(find_pairs_in_steps((ends[0], *others, ends[1])))
    assert ends in [pair.both for pair in found.pairs if pair.relation is Relation.CONTRADICTS]
    assert [(one.code, one.message[:44]) for one in found.findings] == [
        ("too-many", "48 instructions were compared with the 43 mo")
    ]


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


def test_each_answer_is_a_decision_of_its_own_that_can_be_undone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    item, chosen = desk.question(), []
    assert item is not None and item.asks == "AGENTS.md:1 and CLAUDE.md:1 contradict. Keep AGENTS.md:1?"
    first = answer(item, desk.project.view, "accept")
    assert first is not None and first.label == "keep AGENTS.md:1"
    for action, name in (("accept", "chose"), ("rewrite", "chose"), ("reject", "marked as fine")):
        assert desk.give(action) == name
        assert desk.question() is None
        (pair,) = desk.project.instruction_pairs().pairs
        chosen.append(pair.find_chosen(desk.project.view.snapshot.curation.dismissed))
        desk.project.decide(Undo())
        assert desk.question() is not None
    assert {one.place for one in chosen[:2] if one} == {"AGENTS.md:1", "CLAUDE.md:1"} and chosen[2] is None


def test_conflicts_are_on_the_page_now_before_the_first_session(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.question()
    page = make_page(desk.project.refresh()[0], None, Setup())
    (line,) = next(section.lines for section in page.sections if section.id == "lessons")
    assert "AGENTS.md:1" in line.title and "CLAUDE.md:1" in line.title
