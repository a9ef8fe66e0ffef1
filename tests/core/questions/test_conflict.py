"""Questions about instructions that contradict or repeat each other."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from core.base.steps import run_all
from core.config.settings import Settings, SourcesSettings
from core.questions.conflict import MOST_QUESTIONS, find_conflicts
from core.records.decisions import CurationState
from core.records.instructions import Instruction, InstructionFile
from core.records.snapshot import Snapshot
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
