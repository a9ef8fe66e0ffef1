"""The page of a what-if: rows, their order, and the summary."""

from __future__ import annotations

from datetime import timedelta

import pytest

from core.base.paths import ProjectPaths
from core.base.pattern_titles import pattern_title
from core.base.settings import Settings, find_threshold, with_threshold
from core.cli.demo.sample import copy_sample
from core.index.project_state import ProjectState
from core.learning.threshold_replay import Course, PatternDifference, Replay
from core.project.project import Project
from core.records.patterns import Maturity
from core.show.comparison import by_consequence, difference_cells, replay_summary, what_if_document
from core.show.pages.markdown import plain_text, to_markdown
from tests.tui.user import NOW

TODAY = Settings()
CANDIDATE, ESTABLISHED, PROVEN, DEPRECATED = Maturity


def course(state: Maturity, *, inverts: bool = False, days: int | None = 3) -> Course:
    since = None if days is None else NOW - timedelta(days=days)
    return Course(state=state, since=since, inverts=inverts, inverted_at=since if inverts else None)


def turn(pattern_id: str, before: Course, after: Course, *, pinned: bool = False) -> PatternDifference:
    return PatternDifference(pattern_id=pattern_id, before=before, after=after, pinned=pinned)


def replay(
    *turns: PatternDifference, before: tuple[int, ...] = (11, 12, 10, 7), after: tuple[int, ...] = (14, 12, 7, 7)
) -> Replay:
    return Replay(
        turns=turns,
        before=dict(zip(Maturity, before, strict=True)),
        after=dict(zip(Maturity, after, strict=True)),
        events=1240,
    )


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    return Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False).load()


def test_changes_with_the_most_context_recipients_are_first() -> None:
    turns = (
        turn("a-pinned", course(PROVEN), course(DEPRECATED, inverts=True), pinned=True),
        turn("b-one-up", course(CANDIDATE), course(ESTABLISHED)),
        turn("c-two-up", course(CANDIDATE), course(PROVEN)),
        turn("d-back", course(DEPRECATED), course(CANDIDATE)),
        turn("e-inverts", course(DEPRECATED), course(DEPRECATED, inverts=True)),
    )
    ranked = [found.pattern_id for found in by_consequence(replay(*turns), TODAY)]
    assert ranked == ["e-inverts", "d-back", "c-two-up", "b-one-up", "a-pinned"]


@pytest.mark.parametrize(
    ("turns", "message"),
    [
        ([], "Nothing changes"),
        ([turn("a", course(PROVEN), course(CANDIDATE))], "1 of 40 patterns changes state"),
        (
            [
                turn("a", course(PROVEN), course(CANDIDATE)),
                turn("b", course(DEPRECATED), course(CANDIDATE, inverts=True)),
            ],
            "2 of 40 patterns change state, 1 would invert",
        ),
        (
            [turn("a", course(DEPRECATED), course(DEPRECATED, inverts=True))],
            "No pattern changes state, 1 would invert",
        ),
        (
            [turn("a", course(DEPRECATED, inverts=True), course(DEPRECATED))],
            "No pattern changes state, 1 would no longer invert",
        ),
    ],
)
def test_the_headline_summarizes_the_changes(turns: list[PatternDifference], message: str) -> None:
    assert replay_summary(replay(*turns)) == message


def cells(found: PatternDifference, view: ProjectState) -> dict[str, str]:
    return {name: plain_text(parts) for name, parts in difference_cells(found, view).items()}


def test_a_changed_pattern_shows_both_states_and_the_time(view: ProjectState) -> None:
    pattern = next(iter(view.snapshot.patterns.values()))
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE)), view) == {
        "id": pattern.id,
        "change": "proven → candidate",
        "why": "since 2026-11-18 21:00:00 UTC",
        "title": pattern_title(pattern),
    }
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=None)), view)["why"] == ""
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=600)), view)["why"].startswith("since 2025-03")


@pytest.mark.parametrize(
    ("before", "after", "pinned", "note"),
    [
        (False, True, False, "would invert since 2026-11-18 21:00:00 UTC"),
        (False, True, True, "pinned, inverts since 2026-11-18 21:00:00 UTC"),
        (True, False, False, "would no longer invert"),
        (True, False, True, "pinned, no longer inverts"),
        (True, True, True, "pinned: state stays"),
    ],
)
def test_inversions_and_pins_are_noted(view: ProjectState, before: bool, after: bool, pinned: bool, note: str) -> None:
    was, then = course(DEPRECATED, inverts=before), course(DEPRECATED, inverts=after)
    found = cells(turn("gone", was, then, pinned=pinned), view)
    assert (found["change"], found["why"], found["title"]) == ("deprecated", note, "gone")


def test_an_undated_inversion_is_noted_without_a_day(view: ProjectState) -> None:
    undated = Course(state=DEPRECATED, since=None, inverts=True, inverted_at=None)
    assert cells(turn("gone", course(DEPRECATED), undated), view)["why"] == "would invert"


def test_the_page_has_the_tried_value_the_counts_and_each_change(view: ProjectState) -> None:
    known = find_threshold("maturity.half_life_days")
    settings = with_threshold(TODAY, known.name, "30")
    hostile = turn("pat\x1b[2J\n[bold]x", course(PROVEN), course(CANDIDATE))
    page = to_markdown(what_if_document(replay(hostile), [known], settings, view))
    assert "half\\_life\\_days: 90 → 30" in page and "\x1b" not in page
    assert "1 of 40 patterns changes state" in page and "1,240 results replayed" in page
    assert "| candidate | 11 | 14 | +3 |" in page and "proven → candidate" in page
