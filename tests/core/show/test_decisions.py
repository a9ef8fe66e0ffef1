"""The list of decisions: which ones are one row, and what a row says."""

from __future__ import annotations

from datetime import timedelta

from core.index.project_state import ProjectState
from core.records.decisions import (
    EDIT_ANSWERS,
    Decision,
    Verb,
    anchor_question_id,
    duplicate_question_id,
    edited_file_question_id,
    extraction_question_id,
    held_text_question_id,
    sign_unattended,
)
from core.records.snapshot import Snapshot
from core.show.decisions import Entry, decision_cells, decision_document, group_decisions
from core.show.pages.document import plain_text
from core.show.pages.markdown import blocks_markdown, to_markdown
from core.show.pages.patterns import decisions
from tests.factories import NOW, SETTINGS, make_pattern


def decision(number: int, verb: Verb = Verb.PROMOTE, *, days: int = 0, hook: bool = False, group: str = "") -> Decision:
    after = {"patterns": ["a", "b"], "hashes": {}} if hook else {}
    by = sign_unattended("ana") if hook else "ana"
    at = NOW - timedelta(days=days, minutes=number)
    verb = Verb.EXTRACT if hook else verb
    return Decision(id=f"d{number}", at=at, by=by, verb=verb, subject=f"pat-{number}", after=after, group=group)


def words(entry: Entry, snapshot: Snapshot | None = None) -> dict[str, str]:
    return {id: plain_text(cell) for id, cell in decision_cells(entry, snapshot or Snapshot()).items()}


def test_decisions_of_one_act_are_one_row() -> None:
    made = [decision(1, group="g"), decision(2, group="g"), decision(3)]
    first, second = group_decisions(made)
    assert [one.id for one in first.decisions] == ["d1", "d2"] and second.key == "d3"
    assert words(first)["subject"] == "2 patterns" and not first.is_several_acts


def test_what_hooks_extracted_in_one_day_is_one_row() -> None:
    made = [decision(1, hook=True), decision(2, hook=True), decision(3, hook=True, days=1), decision(4)]
    today, yesterday, other = group_decisions(made)
    row = words(today)
    assert (row["verb"], row["subject"], row["change"], row["by"]) == ("extract", "2 sessions", "4 patterns", "hook")
    assert today.is_several_acts and yesterday.key == "d3" and words(other)["by"] == "ana"


def test_undone_and_unfolded_extractions_have_rows_of_their_own() -> None:
    made = [decision(1, hook=True), decision(2, hook=True), decision(3, hook=True)]
    assert [len(entry.decisions) for entry in group_decisions(made, undone={"d2"})] == [1, 1, 1]
    assert [entry.key for entry in group_decisions(made, unfolded={"d1", "d2", "d3"})] == ["d1", "d2", "d3"]


def test_a_row_has_the_title_of_its_pattern_before_the_id() -> None:
    pattern = make_pattern(id="pat-1", error_pattern="", error_message="x is None")
    promoted = decision(1)
    undo = Decision(id="d2", at=NOW, by="ana", verb=Verb.UNDO, subject="d1")
    snapshot = Snapshot(patterns={"pat-1": pattern}, decisions=(promoted, undo))
    assert words(Entry((promoted,)), snapshot)["subject"] == "x is None  pat-1"
    assert words(Entry((undo,)), snapshot)["subject"] == "promote x is None  pat-1"
    state = ProjectState.open(snapshot, SETTINGS, NOW)
    assert "\npromote pat-1" in to_markdown(decision_document(state, undo))
    lines = blocks_markdown(decisions(state, pattern))
    assert "promote" in lines and "undo" in lines, "a decision about a pattern and its undo"
    assert "No decision" in blocks_markdown(decisions(state, make_pattern("pat-2")))


def test_a_dismissed_question_is_shown_with_the_word_of_the_answer() -> None:
    def word(question: str) -> str:
        dismissed = Decision(id="d1", at=NOW, by="ana", verb=Verb.DISMISS, subject=question)
        return words(Entry((dismissed,)))["verb"]

    assert word(duplicate_question_id("a", "b")) == "keep both"
    assert word(extraction_question_id("loop")) == "never extract"
    assert word(anchor_question_id("pat-1", True, "0a1b")) == word("trigger of pat-1") == "keep"
    assert word(anchor_question_id("pat-1", False, "0a1b")) == word("counts of pat-1") == "leave"
    assert word(held_text_question_id("r1", "text")) == "leave out"
    assert [word(edited_file_question_id("A.md", answer=one)) for one in EDIT_ANSWERS] == [
        "leave",
        "restore",
        "take over",
    ]
    assert word("pat-1") == "dismiss"
