from __future__ import annotations

from datetime import timedelta

import pytest
from textual.content import Content

from core.base.errors import BadInput
from core.config.paths import ProjectPaths
from core.config.settings import Settings, with_threshold
from core.demo.sample import copy_sample
from core.learning.threshold_replay import Course, PatternDifference, Replay
from core.project.project import Project
from core.records.patterns import Maturity
from core.state.project_state import ProjectState
from tests.tui.user import NOW
from tui.present import what_if as present
from tui.present.glyphs import DRAWN

TODAY = Settings()
KNOBS = {knob.setting.name: knob for knobs in present.GROUPS.values() for knob in knobs}
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


@pytest.mark.parametrize("name", KNOBS)
def test_a_field_starts_with_the_current_value(name: str) -> None:
    knob = KNOBS[name]
    assert knob.with_text(TODAY, knob.text(TODAY)) == TODAY
    assert knob.text(TODAY) in present.default_note(knob).plain
    assert len(knob.setting.label) <= 16, "has to fit into half of 80 cells"


@pytest.mark.parametrize("name", KNOBS)
@pytest.mark.parametrize("steps", [1, -1])
def test_every_step_leads_to_a_value(name: str, steps: int) -> None:
    knob, settings = KNOBS[name], TODAY
    for _ in range(200):
        settings = knob.with_text(settings, knob.stepped(settings, steps))
    assert settings.learning.half_life_days == TODAY.learning.half_life_days


@pytest.mark.parametrize(
    ("name", "start", "steps", "text"),
    [
        ("maturity.half_life_days", "90", 1, "95"),
        ("maturity.half_life_days", "7", 1, "10"),
        ("maturity.half_life_days", "7", -1, "5"),
        ("maturity.half_life_days", "5", -1, "1"),
        ("maturity.half_life_days", "1", -1, "1"),
        ("maturity.max_harmful", "0.15", 1, "0.16"),
        ("maturity.max_harmful", "0.15", -1, "0.14"),
        ("maturity.max_harmful", "1", 1, "1"),
        ("maturity.max_harmful", "0", -1, "0"),
        ("anti_pattern.min_observations", "3", -1, "2"),
        ("learning.slow_completion_threshold_ms", "1800000", 1, "35"),
        ("learning.neutral_counts_as", "nothing", 1, "failure"),
        ("learning.neutral_counts_as", "nothing", -1, "failure"),
    ],
)
def test_steps_are_whole_and_stay_within_what_is_possible(name: str, start: str, steps: int, text: str) -> None:
    assert KNOBS[name].stepped(with_threshold(TODAY, name, start), steps) == text


def test_minutes_in_the_field_are_milliseconds_in_the_settings() -> None:
    knob = KNOBS["learning.fast_completion_threshold_ms"]
    assert knob.text(TODAY) == "5"
    assert knob.with_text(TODAY, "2.5").learning.fast_completion_threshold_ms == 150_000


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("maturity.half_life_days", "0", "must be a number of days above 0"),
        ("maturity.half_life_days", "ten", "must be a number of days above 0"),
        ("maturity.max_harmful", "1.5", "must be a number from 0 to 1"),
        ("anti_pattern.min_observations", "2.5", "must be a whole number of at least 0"),
        ("learning.fast_completion_threshold_ms", "nan", "must be a finite number of at least 0"),
        ("learning.neutral_counts_as", "12", "must be nothing or failure"),
    ],
)
def test_an_invalid_value_shows_the_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(BadInput) as error:
        KNOBS[name].with_text(TODAY, text)
    assert present.reason(error.value, KNOBS[name]) == reason


def test_changes_with_the_most_context_recipients_are_first() -> None:
    turns = (
        turn("a-pinned", course(PROVEN), course(DEPRECATED, inverts=True), pinned=True),
        turn("b-one-up", course(CANDIDATE), course(ESTABLISHED)),
        turn("c-two-up", course(CANDIDATE), course(PROVEN)),
        turn("d-back", course(DEPRECATED), course(CANDIDATE)),
        turn("e-inverts", course(DEPRECATED), course(DEPRECATED, inverts=True)),
    )
    ranked = [found.pattern_id for found in present.by_consequence(replay(*turns), TODAY)]
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
    assert present.headline(replay(*turns), as_today=False).plain == message


def test_the_headline_is_empty_before_any_trial() -> None:
    assert "replaying" in present.headline(None, as_today=True).plain
    assert "current thresholds" in present.headline(replay(), as_today=True).plain
    assert "is invalid" in present.headline(replay(), as_today=True, faulty=True).plain
    assert present.replay_size(replay()).plain == "1,240 results replayed"
    assert present.nothing_turned(as_today=True).plain != present.nothing_turned(as_today=False).plain


def cells(found: PatternDifference, view: ProjectState) -> dict[str, str]:
    return {name: content.plain for name, content in present.turn_cells(found, view, DRAWN).items()}


def test_a_changed_pattern_shows_both_states_and_the_time(view: ProjectState) -> None:
    pattern = next(iter(view.snapshot.patterns.values()))
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE)), view) == {
        "id": pattern.id,
        "change": "● prov  → ○ cand",
        "note": "since 18 Nov",
        "title": pattern.title,
    }
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=None)), view)["note"] == ""
    assert cells(turn(pattern.id, course(PROVEN), course(CANDIDATE, days=600)), view)["note"] == "since Mar 2025"


@pytest.mark.parametrize(
    ("before", "after", "pinned", "note"),
    [
        (False, True, False, "would invert since 18 Nov"),
        (False, True, True, "pinned, inverts since 18 Nov"),
        (True, False, False, "would no longer invert"),
        (True, False, True, "pinned, no longer inverts"),
        (True, True, True, "pinned: state stays"),
    ],
)
def test_inversions_and_pins_are_noted(view: ProjectState, before: bool, after: bool, pinned: bool, note: str) -> None:
    was, then = course(DEPRECATED, inverts=before), course(DEPRECATED, inverts=after)
    found = cells(turn("gone", was, then, pinned=pinned), view)
    assert (found["change"], found["note"], found["title"]) == ("⊘ depr", note, "")
    assert len(note) <= 28, "has to fit into its column"


def test_an_undated_inversion_is_noted_without_a_day(view: ProjectState) -> None:
    undated = Course(state=DEPRECATED, since=None, inverts=True, inverted_at=None)
    assert cells(turn("gone", course(DEPRECATED), undated), view)["note"] == "would invert"


def test_a_hostile_id_is_harmless(view: ProjectState) -> None:
    shown = present.turn_cells(turn("pat\x1b[2J\n[bold]x", course(PROVEN), course(CANDIDATE)), view, DRAWN)["id"]
    assert isinstance(shown, Content)
    assert shown.plain == "pat␛[2J␤[bold]x"
