"""Rows of questions, and previews of answers."""

from __future__ import annotations

from pathlib import Path

from core.decisions.commands import Promote
from core.index.review_items import FURTHER, OFFER, ReviewItem
from core.project.forecast import ContextChange, Forecast, PatternRank
from core.questions.answer import Answer
from core.questions.context_recipients import LOOP, PAUSED, TASK
from core.records.decisions import Verb
from core.retrieval.rendering import INTRODUCTION, TITLE
from tests.tui.screens.review_steps import desk, flat, front
from tests.tui.user import User, open_dashboard
from tui.kit.looks import ASCII
from tui.screens.review_preview import Outlook, answer_rows, diff_lines, group_same_changes, preview_lines


def row_of(user: User) -> ReviewItem:
    """The only row of the sample: extraction offers."""
    (row,) = [item for item in user.app.view.agenda if item.kind == FURTHER]
    assert row.group is not None
    return row


async def at_row(user: User) -> list[str]:
    """Go to the row; returns the subjects of its questions."""
    row = row_of(user)
    desk(user).go_to(row.question_key)
    await user.settled()
    assert row.group is not None
    return [item.subject for item in row.group.items]


async def test_a_row_names_its_questions_and_asks_them_one_by_one(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        inside = await at_row(user)
        assert all(subject in flat(user) for subject in inside)
        decisions = len(user.app.view.snapshot.decisions)
        total = desk(user).questions.total
        user.app.project.is_readonly = True
        await user.press("a")
        await user.settled()
        user.app.project.is_readonly = False
        asked = [front(user)]
        for _ in inside[1:]:
            await user.press("n")
            await user.settled()
            asked.append(front(user))
        assert asked == inside
        assert len(user.app.view.snapshot.decisions) == decisions, "reading decides nothing"
        assert desk(user).questions.total == total + len(inside)
        assert not any("already resolved" in toast for toast in user.toasts())
        await user.press(*["N"] * (len(inside) - 1))
        await user.decides("x")
        assert user.app.view.snapshot.decisions[-1].verb is Verb.DISMISS
        assert front(user) == inside[1]
        await user.decides("u")
        assert front(user) == inside[0]


async def test_a_question_in_a_row_is_reached_by_its_key_and_the_row_is_put_off(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, searches=True, place="review") as user:
        inside = await at_row(user)
        user.app.project.is_readonly = True
        await user.press("x")
        assert "Read-only" in user.toasts()[-1]
        user.app.project.is_readonly = False
        group = row_of(user).group
        assert group is not None
        desk(user).go_to(group.items[3].question_key)
        await user.settled()
        assert front(user) == group.items[3].subject
        await at_row(user)
        await user.decides("x")
        assert [item for item in user.app.view.agenda if item.kind == FURTHER] == []
        assert set(inside) <= {item.subject for item in user.app.view.queue if item.kind == OFFER}


COMMAND = Promote("pat-error-null-001")
ANSWER = Answer(action="accept", label="invert", effect="a warning takes its place", command=COMMAND)


def changes(kind: str, count: int, after: str = "two\n") -> tuple[ContextChange, ...]:
    return tuple(ContextChange(kind, f"{kind}-{n}", f"Task {n}", "one\n", after, (1, 1)) for n in range(count))


def shown(found: Forecast) -> list[str]:
    return [line.plain.rstrip() for line in preview_lines("yes", ANSWER, Outlook(0, found), COMMAND.pattern_id, ASCII)]


def test_a_row_counts_the_prompts_that_change() -> None:
    found = Forecast(loops=2, paused=1, tasks=9, changed=(*changes(LOOP, 1), *changes(PAUSED, 1), *changes(TASK, 2)))
    nothing = Forecast(loops=2, paused=1, tasks=9)
    yes, no = answer_rows([("a", "yes", ANSWER), ("x", "no", ANSWER)], [Outlook(0, found), Outlook(0, nothing)], 160)
    assert yes.plain.endswith("4 of 12 prompts change")
    assert no.plain.endswith("none of 12 prompts changes")


def test_counts_stay_in_place_while_forecasts_arrive() -> None:
    rows = [("a", "yes", ANSWER), ("x", "no", ANSWER)]
    found = Outlook(0, Forecast(loops=4, tasks=19, changed=changes(TASK, 3)))
    starts = {answer_rows(rows, outlooks, 80)[0].plain.find(text, 30) for outlooks, text in (
        ([None, None], "…"), ([found, None], "3 of 23"), ([found, found], "3 of 23")
    )}  # fmt: skip
    assert len(starts) == 1


def test_a_narrow_row_shortens_the_effect_and_keeps_the_count() -> None:
    found = Outlook(0, Forecast(loops=4, tasks=19, changed=changes(TASK, 3)))
    answer = Answer(action="accept", label="merge", effect="x" * 100, command=COMMAND)
    for width in (44, 60):
        (row,) = answer_rows([("a", "yes", answer)], [found], width)
        assert row.cell_length <= width and row.plain.endswith("…  3 of 23 prompts change")


def test_a_preview_starts_with_the_first_changed_line_and_names_what_changes_alike() -> None:
    after = f"{TITLE}\n\n{INTRODUCTION}\n\n### Success Patterns\n\n1. **Use a clock**\n"
    changed = tuple(ContextChange(LOOP, f"ralph-{n}", f"Task {n}", "", after, (1, 1)) for n in range(5))
    lines = shown(Forecast(loops=5, paused=0, tasks=0, changed=changed))
    assert lines[0].startswith("Yes changes the prompts of running session “Task 0”")
    assert lines[0].endswith("and 2 more sessions:")
    assert lines[1:] == ["  + ### Success Patterns", "  +", "  + 1. **Use a clock**"]


def test_the_state_and_the_rank_of_the_pattern_are_shown() -> None:
    before, after = (PatternRank(1, rank) for rank in (34, 35))
    id = COMMAND.pattern_id
    found = Forecast(loops=4, tasks=19, places=((id, before, after),), turned=((id, "candidate", "proven"),))
    assert shown(found) == ["state  o candidate -> * proven   rank 34 -> 35"]


def test_an_answer_that_changes_nothing_needs_no_line() -> None:
    assert shown(Forecast(loops=2, paused=1, tasks=3)) == []


def test_a_diff_shows_only_what_differs() -> None:
    before, after = "a\nb\nc\nd\ne\nf", "a\nb\nX\nd\ne\nf"
    assert [line.plain for line in diff_lines(before, after)] == ["- c", "+ X"]
    assert diff_lines(before, before) == []


def test_equal_context_changes_are_listed_once() -> None:
    changed = [
        ContextChange("loop", id, f"task {id}", f"head {id}\nold", f"head {id}\n{new}", (1, 1))
        for id, new in (("a", "new"), ("b", "other"), ("c", "new"))
    ]
    assert [[change.id for change in group] for group in group_same_changes(changed)] == [["a", "c"], ["b"]]
