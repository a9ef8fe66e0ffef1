"""Pairs over all sources: scope, areas, questions, costs."""

from __future__ import annotations

from time import process_time
from typing import Any

from core.base.steps import run_all
from core.questions.conflict import choose_kept, find_pairs_in_steps
from core.records.instructions import InstructionPair, PlacedInstruction, Relation
from core.show.pages.instructions import removal_diff
from core.sources.adapters.agent_files import AgentFile


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


def test_opposites_are_found_among_many_texts_with_the_same_words() -> None:
    others = [place(f"Run the npm test of module{n} before commit {n}.", "b.md", n) for n in range(900)]
    ends = place("Always run npm test before commit."), place("Never run npm test before commit.", "AGENTS.md")
    found = run_all(find_pairs_in_steps((ends[0], *others, ends[1])))
    assert ends in [pair.both for pair in found.pairs if pair.relation is Relation.CONTRADICTS]
    assert [one.code for one in found.findings] == ["too-many"]


def test_thousands_of_instructions_take_seconds() -> None:
    verbs, nouns = ("Use", "Never use", "Prefer", "Avoid"), ("cache", "queue", "index", "parser", "mailer")
    placed = [
        place(f"{verbs[n % 4]} the {nouns[n % 5]} of module{n % 700} in step{n % 90}.", f"{n % 50}.md", n)
        for n in range(2_000)
    ]
    began = process_time()
    find(*placed)
    assert process_time() - began < 10
