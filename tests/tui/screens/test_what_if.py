from __future__ import annotations

import threading
from pathlib import Path

import pytest
from textual.widgets import Static

from core.config.settings import Settings
from core.config.thresholds import with_threshold
from core.learning.threshold_replay import Replay
from core.records.patterns import Maturity
from core.state.project_state import ProjectState
from tests.tui.story import Story, story
from tui.screens.help import Help
from tui.screens.patterns import PatternsScreen
from tui.screens.what_if import WhatIfScreen
from tui.widgets.value_field import ValueField

HALF_LIFE = "maturity.half_life_days"


async def at_trial(told: Story, place: str = "patterns") -> WhatIfScreen:
    await told.go(place)
    await told.press("t")
    await told.settled()
    assert isinstance(told.place, WhatIfScreen)
    return told.place


def field(told: Story, name: str) -> ValueField:
    return next(found for found in told.place.query(ValueField) if found.name == name)


def expected(told: Story, **tried: str) -> Replay:
    """What the core answers; names with two underscores for the dot."""
    settings = told.app.view.settings
    for name, text in tried.items():
        settings = with_threshold(settings, name.replace("__", "."), text)
    return told.app.view.what_if(settings)


def shown(told: Story) -> set[str]:
    return set(told.table.keys)


def turned(replay: Replay) -> set[str]:
    return {turn.pattern_id for turn in replay.turns}


@pytest.mark.parametrize("place", ["patterns", "review"])
async def test_it_opens_with_todays_thresholds_and_esc_leaves(sample: Path, home: Path, place: str) -> None:
    async with story(sample, home) as told:
        await at_trial(told, place)
        await told.sees(
            "A trial by the rules alone, without pins: nothing is written.",
            "These are today's thresholds",
            "Step a threshold",
        )
        assert field(told, HALF_LIFE).text == "90"
        assert field(told, HALF_LIFE).has_focus_within
        await told.press("escape")
        assert told.place.place == place


async def test_another_half_life_shows_at_once_what_turns(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_trial(told)
        await told.type("7")
        await told.settled()
        answer = expected(told, maturity__half_life_days="7")
        assert answer.turns
        assert shown(told) == turned(answer)
        before, after = answer.before[Maturity.PROVEN], answer.after[Maturity.PROVEN]
        counts = str(told.place.query_one("#what-if-counts", Static).content)
        assert f"● proven      {before:>2} → {after:>2} {after - before:+}" in counts
        await told.sees(f"{len(answer.turns)} of 40 patterns change state", f"{answer.events:,} results replayed")
        assert told.table.cursor == 0
        assert field(told, HALF_LIFE).has_class("-changed")
        assert not field(told, "maturity.min_feedback").has_class("-changed")


async def test_keys_step_the_value_and_move_from_field_to_field(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_trial(told)
        await told.press("left", "left", "minus", "equals_sign")
        assert field(told, HALF_LIFE).text == "80"
        await told.press("j", "down", "k", "k", "up", "j")
        assert field(told, "maturity.min_feedback").has_focus_within
        await told.press("plus")
        assert field(told, "maturity.min_feedback").text == "4"
        await told.press("G")
        assert field(told, "learning.burst_minutes").has_focus_within
        await told.press("up", "up", "right")
        assert field(told, "learning.neutral_counts_as").text == "failure"
        await told.press("home")
        assert field(told, HALF_LIFE).has_focus_within
        await told.settled()
        answer = expected(
            told, maturity__half_life_days="80", maturity__min_feedback="4", learning__neutral_counts_as="failure"
        )
        assert shown(told) == turned(answer)
        assert place.settings.learning.neutral_counts_as == "failure"


async def test_what_is_no_value_says_why_and_the_last_answer_stays(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_trial(told)
        await told.type("7")
        await told.settled()
        before = shown(told)
        await told.type("..")
        await told.settled()
        await told.sees("must be a number of days above 0")
        assert (shown(told), place.settings.maturity.half_life_days) == (before, 7)
        await told.press("right")
        assert field(told, HALF_LIFE).text == "10", "steps go on from the last value"
        assert not field(told, HALF_LIFE).has_class("-faulty")
        await told.press("ctrl+u")
        await told.paste("\x1b[31m[bold]")
        await told.sees("must be a number of days above 0", "[bold]")
        await told.press("ctrl+u", "0")
        await told.sees("must be a number of days above 0", "The value marked ! does not count; today's does.")
        await told.press("r")
        await told.sees("These are today's thresholds. Change one.")


async def test_below_80_columns_the_thresholds_stand_in_one(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(79, 30)) as told:
        place = await at_trial(told)
        assert len({found.region.x for found in place.query(ValueField)}) == 1
        await told.pilot.resize_terminal(80, 30)
        await told.pilot.pause()
        assert len({found.region.x for found in place.query(ValueField)}) == 2


async def test_one_key_puts_back_one_threshold_or_all(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        place = await at_trial(told)
        await told.press("7", "down", "9", "down", "9")
        await told.press("r")
        assert field(told, "maturity.min_helpful").text == "5"
        assert field(told, HALF_LIFE).text == "7"
        await told.press("ctrl+u")
        assert place.settings.maturity.min_helpful == 5
        await told.press("up")
        assert field(told, "maturity.min_helpful").text == "5", "an empty field is today's value"
        await told.press("R")
        await told.settled()
        assert [found.name for found in place.query(ValueField) if found.has_class("-changed")] == []
        assert place.settings == told.app.view.settings
        await told.sees("These are today's thresholds")
        assert shown(told) == set()


async def test_enter_goes_to_the_patterns_and_on_to_one_of_them(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_trial(told, "review")
        await told.press("7")
        await told.settled()
        await told.press("enter", "j", "j")
        assert told.in_focus(told.table)
        key = told.table.keys[2]
        assert told.table.cursor_key == key
        await told.press("y")
        assert told.app.clipboard == key
        await told.press("enter")
        await told.settled()
        place = told.place
        assert isinstance(place, PatternsScreen)
        assert place.table.cursor_key == key
        await told.sees("if unused", "Why")
        await told.go("review")


async def test_tab_goes_to_the_patterns_and_back_to_the_same_field(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_trial(told)
        await told.press("tab", "enter")
        assert "no pattern changes" in told.toasts()[-1]
        await told.press("tab")
        await told.press("down", "9")
        await told.settled()
        await told.press("tab", "r")
        assert "tab goes to the thresholds" in told.toasts()[-1]
        await told.press("G")
        assert told.table.cursor == len(told.table.keys) - 1
        await told.press("tab")
        assert field(told, "maturity.min_feedback").has_focus_within


async def test_a_new_view_is_replayed_while_it_is_open(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_trial(told)
        await told.press("7")
        await told.settled()
        gone = told.table.keys[0]
        file = sample / told.app.view.pattern(gone).file
        before = told.app.view.snapshot.number
        file.write_text("{}", encoding="utf-8")
        await told.until(lambda: told.app.view.snapshot.number != before, "the change")
        await told.until(lambda: gone not in shown(told), "another answer")
        await told.settled()
        assert shown(told) == turned(expected(told, maturity__half_life_days="7"))
        assert field(told, HALF_LIFE).text == "7"


async def test_a_decision_made_meanwhile_is_noted(sample: Path, home: Path) -> None:
    async with story(sample, home, size=(140, 40)) as told:
        await at_trial(told)
        await told.press("7")
        await told.settled()
        told.app.decide(lambda deck: deck.promote("pat-error-jwt-expired-006"))
        await told.until(lambda: told.row("pat-error-jwt-expired-006").rstrip().count("holds") == 1, "the pin")


async def test_only_one_replay_runs_and_only_the_last_answer_counts(
    sample: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with story(sample, home) as told:
        place = await at_trial(told)
        running, asked = threading.Semaphore(1), []
        let_go = threading.Event()
        real = ProjectState.what_if

        def slow(view: ProjectState, settings: Settings) -> Replay:
            assert running.acquire(blocking=False), "two replays at a time"
            asked.append(settings.maturity.half_life_days)
            let_go.wait()
            running.release()
            return real(view, settings)

        monkeypatch.setattr(ProjectState, "what_if", slow)
        await told.press("7")
        await told.until(lambda: asked == [7], "the first question")
        await told.sees("replaying…")
        await told.press("0", "5")
        let_go.set()
        await told.settled()
        assert asked == [7, 705], "what is typed quickly is asked once"
        monkeypatch.undo()
        assert place.settings.maturity.half_life_days == 705
        assert shown(told) == turned(expected(told, maturity__half_life_days="705"))


async def test_it_writes_nothing_and_takes_nothing_back(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await told.go("patterns")
        told.app.decide(lambda deck: deck.note("pat-error-jwt-expired-006", text="as it is"))
        await told.settled()
        files = {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()}
        await told.press("t", "7", "down", "2", "u", "U")
        await told.settled()
        assert "nothing is decided here" in told.toasts()[-1]
        assert {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()} == files


async def test_help_tells_its_keys_and_numbers_on_the_list_go_to_places(sample: Path, home: Path) -> None:
    async with story(sample, home) as told:
        await at_trial(told)
        await told.press("question_mark")
        assert isinstance(told.app.screen, Help)
        await told.sees("Step the value up", "What if", "→ + =")
        await told.press("escape", "tab", "1")
        await told.until(lambda: told.place.place == "loops", "Loops in front")
        await told.go("patterns")
        assert isinstance(told.place, PatternsScreen)


@pytest.mark.parametrize("size", [(40, 12), (117, 30)], ids=str)
async def test_every_field_can_be_reached_on_a_small_terminal(sample: Path, home: Path, size: tuple[int, int]) -> None:
    async with story(sample, home, size=size) as told:
        await at_trial(told)
        for found in told.place.query(ValueField):
            assert found.has_focus_within
            assert told.app.screen.find_widget(found.query_one("Input")).visible_region
            await told.press("down")
            await told.pilot.pause()
