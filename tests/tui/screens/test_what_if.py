from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Static

from core.base.errors import BadInput
from core.base.settings import Settings, with_threshold
from core.decisions.commands import Note, Promote
from core.learning import threshold_replay
from core.learning.threshold_replay import History, Replay, what_if
from core.records.patterns import Maturity
from tests.core.show.test_comparison import replay
from tests.tui.user import User, open_dashboard
from tui.kit.value_field import ValueField
from tui.screens.help import Help
from tui.screens.patterns import PatternsScreen
from tui.screens.what_if import KNOBS, WhatIfScreen, default_note, headline, nothing_turned, replay_size

HALF_LIFE = "maturity.half_life_days"


async def open_what_if(user: User, place: str = "patterns") -> WhatIfScreen:
    await user.go(place)
    await user.press("t")
    await user.settled()
    assert isinstance(user.place, WhatIfScreen)
    return user.place


def field(user: User, name: str) -> ValueField:
    return next(found for found in user.place.query(ValueField) if found.name == name)


def expected(user: User, **tried: str) -> Replay:
    """What the core answers; names with two underscores for the dot."""
    settings = user.app.view.settings
    for name, text in tried.items():
        settings = with_threshold(settings, name.replace("__", "."), text)
    return what_if(settings, user.app.view.board.history)


def shown(user: User) -> set[str]:
    return set(user.table.keys)


def turned(replay: Replay) -> set[str]:
    return {turn.pattern_id for turn in replay.turns}


@pytest.mark.slow
@pytest.mark.parametrize("place", ["patterns", "review"])
async def test_the_what_if_screen_opens_with_the_current_thresholds_and_esc_closes_it(
    sample: Path, home: Path, place: str
) -> None:
    async with open_dashboard(sample, home, place=place) as user:
        await open_what_if(user, place)
        await user.sees(
            "Rules only, without pins. Nothing is written.",
            "These are the current thresholds",
            "Change a threshold",
        )
        assert field(user, HALF_LIFE).text == "90"
        assert field(user, HALF_LIFE).has_focus_within
        await user.press("escape")
        assert user.place.place == place


@pytest.mark.slow
async def test_another_half_life_lists_the_patterns_that_change(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await open_what_if(user)
        await user.type("7")
        await user.settled()
        answer = expected(user, maturity__half_life_days="7")
        assert answer.turns
        assert shown(user) == turned(answer)
        before, after = answer.before[Maturity.PROVEN], answer.after[Maturity.PROVEN]
        counts = str(user.place.query_one("#what-if-counts", Static).content)
        assert f"● proven      {before:>2} → {after:>2} {after - before:+}" in counts
        await user.sees(f"{len(answer.turns)} of 40 patterns change state", f"{answer.events:,} results replayed")
        assert user.table.cursor == 0
        assert field(user, HALF_LIFE).has_class("-changed")
        assert not field(user, "maturity.min_feedback").has_class("-changed")


@pytest.mark.slow
async def test_keys_step_the_value_and_move_from_field_to_field(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        await user.press("left", "left", "left", "right")
        assert field(user, HALF_LIFE).text == "80"
        await user.press("j", "down", "k", "k", "up", "j")
        assert field(user, "maturity.min_feedback").has_focus_within
        await user.press("right")
        assert field(user, "maturity.min_feedback").text == "4"
        await user.press("G")
        assert field(user, "learning.burst_minutes").has_focus_within
        await user.press("up", "up", "right")
        assert field(user, "learning.neutral_counts_as").text == "failure"
        await user.press("home")
        assert field(user, HALF_LIFE).has_focus_within
        await user.settled()
        answer = expected(
            user, maturity__half_life_days="80", maturity__min_feedback="4", learning__neutral_counts_as="failure"
        )
        assert shown(user) == turned(answer)
        assert place.settings.learning.neutral_counts_as == "failure"


@pytest.mark.slow
async def test_an_invalid_value_is_explained_and_the_last_result_stays(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        await user.type("7")
        await user.settled()
        before = shown(user)
        await user.type("..")
        await user.settled()
        await user.sees("must be a number of days above 0")
        assert (shown(user), place.settings.maturity.half_life_days) == (before, 7)
        await user.press("right")
        assert field(user, HALF_LIFE).text == "10", "steps go on from the last value"
        assert not field(user, HALF_LIFE).has_class("-faulty")
        await user.press("ctrl+u")
        await user.paste("\x1b[31m[bold]")
        await user.sees("must be a number of days above 0", "[bold]")
        await user.press("ctrl+u", "0")
        await user.sees("must be a number of days above 0", "The value marked ! is invalid; the current one is used.")
        await user.press("r")
        await user.sees("These are the current thresholds. Change one.")


@pytest.mark.slow
async def test_below_80_cells_the_thresholds_are_in_one_column(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(79, 30), place="patterns") as user:
        place = await open_what_if(user)
        assert len({found.region.x for found in place.query(ValueField)}) == 1
        await user.pilot.resize_terminal(80, 30)
        await user.until(lambda: len({found.region.x for found in place.query(ValueField)}) == 2, "two columns")


@pytest.mark.slow
async def test_one_key_restores_one_threshold_or_all(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        await user.press("7", "down", "9", "down", "9")
        await user.press("r")
        assert field(user, "maturity.min_helpful").text == "5"
        assert field(user, HALF_LIFE).text == "7"
        await user.press("ctrl+u")
        assert place.settings.maturity.min_helpful == 5
        await user.press("up")
        assert field(user, "maturity.min_helpful").text == "5", "an empty field is today's value"
        await user.press("R")
        await user.settled()
        assert [found.name for found in place.query(ValueField) if found.has_class("-changed")] == []
        assert place.settings == user.app.view.settings
        await user.sees("These are the current thresholds")
        assert shown(user) == set()


@pytest.mark.slow
async def test_enter_goes_to_the_patterns_and_on_to_one_of_them(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await open_what_if(user, "review")
        await user.press("7")
        await user.settled()
        await user.press("enter", "j", "j")
        assert user.in_focus(user.table)
        key = user.table.keys[2]
        assert user.table.cursor_key == key
        await user.press("y")
        assert user.app.clipboard == key
        await user.press("enter")
        await user.settled()
        place = user.place
        assert isinstance(place, PatternsScreen)
        assert place.table.cursor_key == key
        await user.sees("if unused", "Why")
        await user.go("review")


@pytest.mark.slow
async def test_tab_goes_to_the_patterns_and_back_to_the_same_field(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await open_what_if(user)
        await user.press("tab", "enter")
        assert "No pattern changes" in user.toasts()[-1]
        await user.press("tab")
        await user.press("down", "9")
        await user.settled()
        await user.press("tab", "r")
        assert "Press tab to go to the thresholds" in user.toasts()[-1]
        await user.press("G")
        assert user.table.cursor == len(user.table.keys) - 1
        await user.press("tab")
        assert field(user, "maturity.min_feedback").has_focus_within


@pytest.mark.slow
async def test_a_new_view_is_replayed_while_it_is_open(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await open_what_if(user)
        await user.press("7")
        await user.settled()
        removed = user.table.keys[0]
        file = sample / user.app.view.pattern(removed).file
        before = user.app.view.snapshot.number
        file.write_text("{}", encoding="utf-8")
        await user.until(lambda: user.app.view.snapshot.number != before, "the change")
        await user.until(lambda: removed not in shown(user), "another answer")
        await user.settled()
        assert shown(user) == turned(expected(user, maturity__half_life_days="7"))
        assert field(user, HALF_LIFE).text == "7"


@pytest.mark.slow
async def test_a_pin_set_meanwhile_is_shown_in_the_list(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(140, 40), place="patterns") as user:
        await open_what_if(user)
        await user.press("7")
        await user.settled()
        user.app.decide(Promote("pat-error-jwt-expired-006"))
        await user.until(lambda: user.row("pat-error-jwt-expired-006").rstrip().count("pinned") == 1, "the pin")


@pytest.mark.slow
async def test_only_one_replay_runs_and_only_the_last_answer_counts(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        running, asked = threading.Semaphore(1), []
        let_go = threading.Event()
        real = threshold_replay.what_if

        def slow(settings: Settings, history: History) -> Replay:
            assert running.acquire(blocking=False), "two replays at a time"
            asked.append(settings.maturity.half_life_days)
            let_go.wait()
            running.release()
            return real(settings, history)

        monkeypatch.setattr(threshold_replay, "what_if", slow)
        await user.press("7")
        await user.until(lambda: asked == [7], "the first question")
        await user.sees("Replaying…")
        await user.press("0", "5")
        let_go.set()
        await user.settled()
        assert asked == [7, 705], "what is typed quickly is asked once"
        monkeypatch.undo()
        assert place.settings.maturity.half_life_days == 705
        assert shown(user) == turned(expected(user, maturity__half_life_days="705"))


@pytest.mark.slow
async def test_what_if_writes_nothing_and_undoes_nothing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        user.app.decide(Note("pat-error-jwt-expired-006", text="as it is"))
        await user.settled()
        files = {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()}
        await user.press("t", "7", "down", "2", "u", "U")
        await user.settled()
        assert "No decisions on this screen" in user.toasts()[-1]
        assert {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()} == files


@pytest.mark.slow
async def test_help_lists_its_keys_and_number_keys_on_the_list_go_to_screens(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        await open_what_if(user)
        await user.press("question_mark")
        assert isinstance(user.app.screen, Help)
        await user.sees("Increase the value", "What-if", "→          step_up")
        await user.press("escape", "tab", "4")
        await user.until(lambda: user.place.place == "loops", "Loops in front")
        await user.go("patterns")
        assert isinstance(user.place, PatternsScreen)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(40, 12), (117, 30)], ids=str)
async def test_every_field_can_be_reached_on_a_small_terminal(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with open_dashboard(sample, home, size=size, place="patterns") as user:
        await open_what_if(user)
        for found in user.place.query(ValueField):
            assert found.has_focus_within
            assert user.app.screen.find_widget(found.query_one("Input")).visible_region
            await user.press("down")
            await user.pilot.pause()


TODAY = Settings()


@pytest.mark.parametrize("name", KNOBS)
def test_a_field_starts_with_the_current_value(name: str) -> None:
    knob = KNOBS[name]
    assert knob.try_value(TODAY, knob.text(TODAY), TODAY) == TODAY
    assert knob.text(TODAY) in default_note(knob).plain
    assert len(knob.setting.label) <= 16, "has to fit into half of 80 cells"


@pytest.mark.parametrize("name", KNOBS)
@pytest.mark.parametrize("steps", [1, -1])
def test_every_step_leads_to_a_value(name: str, steps: int) -> None:
    knob, settings = KNOBS[name], TODAY
    for _ in range(200):
        settings = knob.try_value(settings, knob.stepped(settings, steps), TODAY)
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
    assert knob.try_value(TODAY, "2.5", TODAY).learning.fast_completion_threshold_ms == 150_000


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
        KNOBS[name].try_value(TODAY, text, TODAY)
    assert str(error.value) == reason


def test_the_headline_is_empty_before_any_trial() -> None:
    assert "replaying" in headline(None, as_today=True).plain
    assert "current thresholds" in headline(replay(), as_today=True).plain
    assert "is invalid" in headline(replay(), as_today=True, faulty=True).plain
    assert replay_size(replay()).plain == "1,240 results replayed"
    assert nothing_turned(as_today=True).plain != nothing_turned(as_today=False).plain
