"""What the answers to a question would change, as text."""

from __future__ import annotations

from pathlib import Path

from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.curation.commands import Promote
from core.forecast.forecast import ContextChange, Forecast, PatternRank
from core.project.project import Project
from core.questions.answers import Answer
from core.questions.context_recipients import LOOP, PAUSED, TASK
from core.retrieval.rendering import INTRODUCTION, TITLE
from tests.factories import DEBUG_NOW
from tui.present.glyphs import ASCII
from tui.present.review_answers import Outlook, answer_rows, what_changes

COMMAND = Promote("pat-error-null-001")


def test_contexts_of_paused_loops_are_labelled_as_such(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    answer = Answer(action="accept", label="Invert", effect="becomes a warning", command=COMMAND)
    changed = tuple(ContextChange(kind, "ralph-a", "Fix it", "one\n", f"{kind}\n", (1, 1)) for kind in (LOOP, PAUSED))
    found = Forecast(loops=2, paused=1, tasks=0, changed=changed)
    (row,) = answer_rows([answer], [Outlook(0, found)], ["a"], "pat-error-null-001", ASCII, 160)
    assert "1 of 2 running loops, 1 of 1 paused (on resume)" in row.plain
    lines = [line.plain for line in what_changes(answer, Outlook(0, found), view, ASCII)]
    assert "> loop Fix it" in lines
    assert "= paused loop, on resume: Fix it" in lines
    unchanged = what_changes(answer, Outlook(0, Forecast(loops=0, paused=1, tasks=0)), view, ASCII)
    assert [line.plain for line in unchanged] == ["No injected text changes (1 paused loop)."]


def test_a_preview_starts_with_the_first_changed_line_of_one_context(tmp_path: Path) -> None:
    view = Project(ProjectPaths(tmp_path), Settings(), by="ada", clock=lambda: DEBUG_NOW, cache=False).view
    answer = Answer(action="accept", label="create", effect="", command=COMMAND)
    after = f"{TITLE}\n\n{INTRODUCTION}\n\n### Success Patterns\n\n1. **Use a clock**\n"
    changed = tuple(ContextChange(LOOP, f"ralph-{n}", f"Task {n}", "", after, (1, 1)) for n in range(5))
    found = Forecast(loops=5, paused=0, tasks=0, changed=changed)
    lines = [line.plain.rstrip() for line in what_changes(answer, Outlook(0, found), view, ASCII)]
    assert lines[:4] == ["> loop Task 0", "  + ### Success Patterns", "  +", "  + 1. **Use a clock**"]
    assert lines[4:] == ["The same change in:", "> loop Task 1", "> loop Task 2", "  and 2 more"]


def test_an_answer_lists_only_changes_and_main_answers_are_emphasized() -> None:
    names = ("Invert", "Reject", "Reset", "Archive")
    answers = [Answer(action="accept", label=name, effect="", command=COMMAND) for name in names]
    changed = (ContextChange(LOOP, "ralph-a", "Fix it", "one\n", "two\n", (1, 1)),)
    outlooks = [Outlook(0, Forecast(loops=2, paused=1, tasks=9, changed=changed))]
    outlooks += [Outlook(0, Forecast(loops=2, paused=1, tasks=9))] * 3
    rows = answer_rows(answers, outlooks, list("axrD"), "pat-error-null-001", ASCII, 160)
    assert [row.plain.split() for row in rows[1:]] == [["x", "Reject"], ["r", "Reset"], ["D", "Archive"]]
    assert rows[0].plain.endswith("1 of 2 running loops") and "tasks" not in rows[0].plain
    bold = ["bold" in {str(span.style) for span in row.spans} for row in rows]
    assert bold == [True, True, True, False]


def test_a_narrow_row_shows_the_whole_effect_instead_of_the_rank() -> None:
    effect = "replaced by an anti-pattern"
    answer = Answer(action="accept", label="accept inversion", effect=effect, command=COMMAND)
    before, after = (PatternRank(1, rank) for rank in (34, 35))
    found = Forecast(loops=4, paused=0, tasks=19, places=((COMMAND.pattern_id, before, after),))
    for width, has_rank in ((80, True), (48, False)):
        (row,) = answer_rows([answer], [Outlook(0, found)], ["a"], COMMAND.pattern_id, ASCII, width)
        assert effect in row.plain
        assert ("rank 34 -> 35" in row.plain) is has_rank


def test_answers_stay_in_place_while_their_forecasts_arrive() -> None:
    effects = (
        "these reports never count",
        "these reports count as usual",
        "asked again in 7 days; nothing else changes",
    )
    names = ("discard", "count them", "wait for evidence")
    answers = [
        Answer(action="accept", label=name, effect=effect, command=COMMAND, matters=n < 2)
        for n, (name, effect) in enumerate(zip(names, effects, strict=True))
    ]
    changed = tuple(ContextChange(LOOP, f"ralph-{n}", "Fix it", "one\n", "two\n", (1, 1)) for n in range(4))
    tasks = tuple(ContextChange(TASK, f"task-{n}", "Fix it", "one\n", "two\n", (1, 1)) for n in range(10))
    turned = tuple((f"pat-{n}", "candidate", "proven") for n in range(3))
    found = Outlook(0, Forecast(loops=4, paused=0, tasks=19, changed=(*changed, *tasks), turned=turned))
    for outlooks in ([None] * 3, [found, None, None], [found, found, None]):
        rows = [row.plain for row in answer_rows(answers, outlooks, list("axW"), "pat-error-null-001", ASCII, 78)]
        assert all(
            row.startswith(f"{key}  {name:17}  these rep")
            for row, key, name in zip(rows[:2], "ax", names, strict=False)
        )
        assert rows[2].endswith(effects[2])
        for row, outlook in zip(rows[:2], outlooks, strict=False):
            assert row.find("4/4 loops, 10/19 tasks" if outlook else "…", 40) == 56
            assert len(row) <= 78
