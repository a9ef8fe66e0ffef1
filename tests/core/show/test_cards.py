"""Review questions as documents: each kind names its subject, its evidence, and what yes and no do."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.cli.demo.sample import copy_sample
from core.index.project_state import ProjectState
from core.index.review_items import BORDERLINE, DUPLICATE, ESCALATION, EXTRACTED, OFFER, PROPOSAL, ReviewItem
from core.learning.scoreboard import Scoreboard
from core.project.project import Project
from core.questions.kinds import answer, answers
from core.records.decisions import Decision, ProposedDecision, Verb
from core.records.episodes import Attempt, Task
from core.records.loops import Loop
from core.records.snapshot import Snapshot
from core.retrieval.similarity import Repetition
from core.show.card_evidence import MAX_USES, conflicts, exact_text, uses, words_changed, work_title, works_of
from core.show.cards import NO, YES, card_title, is_about, present_effect, question_record, review_card, terminal_card
from core.show.contexts import Preview
from core.show.pages.markdown import blocks_markdown, to_markdown
from core.show.pages.patterns import rate_line
from core.sources.adapters.agent_files import AgentFile
from tests.agent_lessons import add_lessons, lesson_questions, make_agent_lesson
from tests.factories import make_event, make_pattern
from tests.fix_sessions.replay import Workshop
from tests.fix_sessions.sessions import read_sessions

NOW = datetime(2026, 2, 4, tzinfo=UTC)
RULE = "Use uv, not pip, to install dependencies."
FILES = (
    AgentFile(agents=("Claude Code",), file="CLAUDE.md", lines=("# Shop", f"- {RULE}", "- Never edit dist"), loaded=3),
    AgentFile(agents=("Codex",), file="AGENTS.md", lines=(f"- {RULE}",), loaded=0),
)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    """The sample project with all questions."""
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    project = Project(ProjectPaths(folder), Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    return project.search_all()


def test_every_question_has_a_card_with_evidence_and_the_answers_yes_and_no(sample: ProjectState) -> None:
    for item in (*sample.queue, *sample.agenda):
        card = review_card(sample, item)
        assert card.title == item.asks or item.group is not None
        assert len(card.blocks) > 1, item.kind
        actions = {one.action for one in answers(item, sample)}
        assert {YES, NO} <= actions, item.kind
        text = to_markdown(terminal_card(sample, item))
        assert "Yes:" in text and "No:" in text, item.kind


def test_an_escalation_is_named_by_its_file(sample: ProjectState) -> None:
    for item in sample.queue:
        if item.kind == ESCALATION and item.session is not None:
            assert card_title(sample, item) == item.session.file_path
            assert item.subject not in item.asks and item.session.file_path in item.asks


def test_lessons_found_in_a_session_are_under_its_title(sample: ProjectState) -> None:
    offered = [item for item in sample.queue if item.kind == OFFER]
    assert offered
    for item in offered:
        title = blocks_markdown(review_card(sample, item).blocks).splitlines()[0]
        assert sample.loop(item.subject).task in title


def test_uses_without_a_session_are_named_in_words_and_add_up_to_the_counts(sample: ProjectState) -> None:
    pattern = sample.pattern("pat-error-deadlock-retry-005")
    text = blocks_markdown([*conflicts(sample, pattern), *uses(sample, pattern)])
    counted = re.search(r"counts (\d+) uses: (\d+) of recorded sessions, (\d+) without one", text)
    assert counted is not None
    total, recorded, rest = map(int, counted.groups())
    assert total == recorded + rest == sample.assessment(pattern.id).uses
    assert f"{rest} uses in the success trend of its file" in text


def test_a_lesson_without_results_has_no_rate_and_the_newest_uses_are_listed() -> None:
    pattern = make_pattern()
    board = Scoreboard.build(Snapshot(patterns={pattern.id: pattern}), NOW, Settings())
    assert blocks_markdown([rate_line(pattern, board.assessment(pattern.id))]).startswith("No result yet")
    for count in (MAX_USES, MAX_USES + 1):
        events = tuple(
            make_event(n, "applied", NOW, pattern_id=pattern.id, loop_id=f"l{n}", success=True) for n in range(count)
        )
        state = ProjectState.open(Snapshot(patterns={pattern.id: pattern}, events=events), Settings(), NOW)
        assert ("more use" in blocks_markdown(uses(state, pattern))) is (count > MAX_USES)
        rate = blocks_markdown([rate_line(pattern, state.assessment(pattern.id))])
        assert "success rate" in rate and "No result" not in rate


def test_the_work_of_a_task_is_its_attempts_newest_first() -> None:
    attempts = {f"t.{n}": Attempt(task_id="t", number=n) for n in (1, 3)}
    tasks = {"t": Task(id="t", description="Add a tax", total_attempts=3, current_attempt=2)}
    state = ProjectState.open(
        Snapshot(tasks=tasks, attempts=attempts, loops={"l": Loop(id="l", task="Fix it")}), Settings(), NOW
    )
    assert [works_of(state, id) for id in ("t", "t.1", "l", "x")] == [["t.3", "t.1"], ["t.1"], ["l"], []]
    assert [work_title(state, id) for id in ("t", "t.1", "l", "x")] == ["Add a tax", "Add a tax", "Fix it", ""]
    replaced = replace(state, snapshot=state.snapshot.with_changes(tasks={"t": Task(id="t", current_attempt=1)}))
    assert works_of(replaced, "t") == ["t.1"]


def test_a_decision_about_a_question_or_its_subjects_resolves_it() -> None:
    item = ReviewItem(kind=DUPLICATE, subject="a", other="b", question="?", reason="?", priority=0.5)
    for subject, resolves in (("a", True), ("b", True), ("c", False)):
        decision = Decision(id="d", at=NOW, by="ana", verb=Verb.DEPRECATE, subject=subject)
        assert is_about(decision, item) is resolves, subject
    dismissed = Decision(id="d", at=NOW, by="ana", verb=Verb.DISMISS, subject=item.question_key)
    assert is_about(dismissed, item)
    assert question_record(replace(item, kind=BORDERLINE)) == ("patterns", "a")
    proposed = ProposedDecision(id="p", at=NOW, by="agent:x", verb="undo", subjects=("d",), command={})
    assert question_record(replace(item, kind=PROPOSAL, subject="p", proposed=proposed)) == ("log", "d")


def test_the_type_of_the_file_format_is_shown_only_if_the_message_names_no_error() -> None:
    def stored(message: str) -> str:
        pattern = make_pattern(error_type="RuntimeError", error_message=message, tags=("python",))
        state = ProjectState.open(Snapshot(patterns={pattern.id: pattern}), Settings(), NOW)
        return blocks_markdown(exact_text(state, pattern))

    assert "RuntimeError" not in stored("KeyError: 'count'")
    assert "RuntimeError" in stored("the queue is closed") and "RuntimeError" in stored("TypeError: total is None")


def test_a_new_lesson_is_shown_with_its_error_diff_and_the_run_that_passed(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path)
    workshop.play(next(one for one in read_sessions() if one.name.endswith("dict-changed-in-loop")))
    state = workshop.open().view
    (item,) = (one for one in state.queue if one.kind == EXTRACTED)
    text = blocks_markdown(review_card(state, item).blocks)
    for part in (
        "dictionary changed size during iteration",
        "seen 1 time, never given",
        "+        for key in list(self.entries):",
        "test_expire_removes_old_entries failed",
        "passed",
    ):
        assert part.replace("_", "\\_") in text or part in text, part


def test_removed_and_added_words_are_marked_without_colour() -> None:
    def marked(before: str, after: str) -> list[str]:
        rows = words_changed(before, after)
        return ["".join(part if isinstance(part, str) else str(part[0]) for part in row.parts) for row in rows]  # type: ignore[index]

    assert marked("Guard the object now", "Guard no object") == ["Guard [-the-] {+no+} object [-now-] "]
    assert marked("one\ntwo", "one\n2") == ["one", "[-two-] {+2+}"]
    assert marked("same", "same") == ["same"]


def test_a_repeated_lesson_is_marked_in_review_and_as_a_pattern_in_context(tmp_path: Path) -> None:
    copy_sample(tmp_path, NOW)
    project = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: NOW, cache=False)
    project.load()
    add_lessons(project, make_agent_lesson(RULE, at=NOW))
    (item,) = lesson_questions(project)
    plain, marked = (
        blocks_markdown(review_card(project.view, item, agent_files=files).blocks) for files in ((), FILES)
    )
    assert "by themselves" not in plain
    assert "CLAUDE.md:2" in marked
    assert "AGENTS.md" not in marked, "an agent does not read that far"
    chosen = answer(item, project.view, "accept")
    assert chosen is not None
    project.decide(chosen.command)
    (made,) = project.lessons()[0].patterns
    found = Preview.prepare(project.view, RULE, project.settings.injection, FILES)
    assert found.repeated[made] == Repetition("CLAUDE.md", 2)


def test_a_card_shows_that_the_success_rate_keeps_a_lesson_out_of_prompts(sample: ProjectState) -> None:
    ids = [id for id in sample.snapshot.patterns if id in sample.board and sample.assessment(id).injectable]
    low, high = (next(id for id in ids if sample.has_low_rate(id) is is_low) for is_low in (True, False))
    effects = [
        present_effect(sample, ReviewItem(kind=BORDERLINE, subject=id, question="?", reason="?", priority=0.5))
        for id in (low, high)
    ]
    assert "No prompt gets it" in effects[0] and "Agents get it now" in effects[1]
