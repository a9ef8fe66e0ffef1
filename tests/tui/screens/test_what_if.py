"""What-if and Compare, and the editor of settings."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from textual.widgets import Static

from core.base.errors import BadInput
from core.base.formatting import LAST_VISIT
from core.base.settings import InjectionSettings, Settings, with_threshold
from core.decisions.commands import Note, Promote
from core.learning import threshold_replay
from core.learning.threshold_replay import History, Replay, what_if
from core.project.as_of import build_past_state
from core.records.patterns import Maturity
from core.records.times import iso
from core.show.comparison import Counts, compare_states
from tests.core.show.test_comparison import replay
from tests.tui.user import NOW, User, open_dashboard
from tui.kit.fields import ValueField
from tui.kit.looks import ASCII, DRAWN
from tui.kit.user_state import UserState
from tui.screens.dialogs import Help
from tui.screens.history import (
    KNOBS,
    CompareScreen,
    WhatIfScreen,
    count_lines,
    default_note,
    headline,
    nothing_turned,
    replay_size,
)
from tui.screens.knobs import KNOBS as CONTEXT_KNOBS
from tui.screens.patterns import PatternsScreen

HALF_LIFE = "maturity.half_life_days"


async def open_what_if(user: User, place: str = "patterns") -> WhatIfScreen:
    await user.go(place)
    await user.press("t")
    await user.settled()
    assert isinstance(user.place, WhatIfScreen)
    return user.place


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


async def test_another_half_life_lists_what_changes_and_an_invalid_one_is_explained(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        await user.sees("Rules only, without pins. Nothing is written.", "These are the current thresholds")
        assert user.field(HALF_LIFE).text == "90" and user.field(HALF_LIFE).has_focus_within
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
        assert user.field(HALF_LIFE).has_class("-changed")
        assert not user.field("maturity.min_feedback").has_class("-changed")

        await user.type("..")
        await user.settled()
        await user.sees("must be a number of days above 0")
        assert (shown(user), place.settings.maturity.half_life_days) == (turned(answer), 7)
        await user.press("right")
        assert user.field(HALF_LIFE).text == "10", "steps go on from the last value"
        assert not user.field(HALF_LIFE).has_class("-faulty")
        await user.press("ctrl+u")
        await user.paste("\x1b[31m[bold]")
        await user.sees("must be a number of days above 0", "[bold]")
        await user.press("ctrl+u", "0")
        await user.sees("must be a number of days above 0", "The value marked ! is invalid; the current one is used.")
        await user.press("r")
        await user.sees("These are the current thresholds. Change one.")
        await user.press("escape")
        assert user.place.place == "patterns"


async def test_keys_step_and_restore_values_and_move_from_field_to_field(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        place = await open_what_if(user)
        await user.press("left", "left", "left", "right")
        assert user.field(HALF_LIFE).text == "80"
        await user.press("j", "down", "k", "k", "up", "j")
        assert user.field("maturity.min_feedback").has_focus_within
        await user.press("right")
        assert user.field("maturity.min_feedback").text == "4"
        await user.press("G")
        assert user.field("learning.burst_minutes").has_focus_within
        await user.press("up", "up", "right")
        assert user.field("learning.neutral_counts_as").text == "failure"
        await user.press("home")
        assert user.field(HALF_LIFE).has_focus_within
        await user.settled()
        answer = expected(
            user, maturity__half_life_days="80", maturity__min_feedback="4", learning__neutral_counts_as="failure"
        )
        assert shown(user) == turned(answer)
        assert place.settings.learning.neutral_counts_as == "failure"
        await user.press("down", "r")
        assert (user.field("maturity.min_feedback").text, user.field(HALF_LIFE).text) == ("3", "80")
        await user.press("9", "ctrl+u")
        assert place.settings.maturity.min_feedback == 3
        await user.press("up")
        assert user.field("maturity.min_feedback").text == "3", "an empty field is today's value"
        await user.press("R")
        await user.settled()
        assert [found.name for found in place.query(ValueField) if found.has_class("-changed")] == []
        assert place.settings == user.app.view.settings
        await user.sees("These are the current thresholds")
        assert shown(user) == set()


async def test_tab_and_enter_go_to_the_patterns_and_on_to_one_of_them(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="review") as user:
        await open_what_if(user, "review")
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
        assert user.field("maturity.min_feedback").has_focus_within
        await user.press("enter", "g")
        assert user.in_focus(user.table)
        key = user.table.keys[0]
        await user.press("y")
        assert user.app.clipboard == key
        await user.press("enter")
        await user.settled()
        assert isinstance(user.place, PatternsScreen) and user.place.table.cursor_key == key


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
        assert user.field(HALF_LIFE).text == "7"
        user.app.decide(Promote("pat-error-jwt-expired-006"))
        await user.until(lambda: user.row("pat-error-jwt-expired-006").rstrip().count("pinned") == 1, "the pin")


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


async def test_what_if_writes_nothing_and_undoes_nothing(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, place="patterns") as user:
        user.app.decide(Note("pat-error-jwt-expired-006", text="as it is"))
        await user.settled()
        files = {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()}
        await user.press("t", "7", "down", "2", "u", "U")
        await user.settled()
        assert "No decisions on this screen" in user.toasts()[-1]
        assert {path: path.read_bytes() for path in sample.rglob("*") if path.is_file()} == files
        await user.press("question_mark")
        assert isinstance(user.app.screen, Help)
        await user.sees("Increase the value", "What-if", "→          step_up")
        await user.press("escape", "tab", "4")
        await user.arrives("loops")


async def test_every_field_can_be_reached_on_small_terminals(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(40, 12), place="patterns") as user:
        place = await open_what_if(user)
        for size, columns in (((40, 12), 1), ((80, 30), 2)):
            await user.pilot.resize_terminal(*size)
            await user.press("home")
            await user.until(
                lambda count=columns: len({found.region.x for found in place.query(ValueField)}) == count,  # type: ignore[misc]
                f"{columns} columns in {size}",
            )
            for found in place.query(ValueField):
                assert found.has_focus_within
                assert user.app.screen.find_widget(found.query_one("Input")).visible_region
                await user.press("down")


TODAY = Settings()


def test_a_field_starts_with_the_current_value_and_every_step_leads_to_a_value() -> None:
    for name, knob in KNOBS.items():
        assert knob.try_value(TODAY, knob.text(TODAY), TODAY) == TODAY, name
        assert knob.text(TODAY) in default_note(knob).plain, name
        assert len(knob.setting.label) <= 16, "has to fit into half of 80 cells"
        for steps in (1, -1):
            settings = TODAY
            for _ in range(200):
                settings = knob.try_value(settings, knob.stepped(settings, steps), TODAY)
            assert settings.learning.half_life_days == TODAY.learning.half_life_days, name


def test_steps_are_whole_and_stay_within_what_is_possible() -> None:
    for name, start, steps, text in (
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
    ):
        assert KNOBS[name].stepped(with_threshold(TODAY, name, start), steps) == text, (name, start)


def test_minutes_in_the_field_are_milliseconds_in_the_settings() -> None:
    knob = KNOBS["learning.fast_completion_threshold_ms"]
    assert knob.text(TODAY) == "5"
    assert knob.try_value(TODAY, "2.5", TODAY).learning.fast_completion_threshold_ms == 150_000


def test_an_invalid_value_is_refused_with_the_reason() -> None:
    for knobs, name, text, reason in (
        (KNOBS, "maturity.half_life_days", "0", "must be a number of days above 0"),
        (KNOBS, "maturity.half_life_days", "ten", "must be a number of days above 0"),
        (KNOBS, "maturity.max_harmful", "1.5", "must be a number from 0 to 1"),
        (KNOBS, "anti_pattern.min_observations", "2.5", "must be a whole number of at least 0"),
        (KNOBS, "learning.fast_completion_threshold_ms", "nan", "must be a finite number of at least 0"),
        (KNOBS, "learning.neutral_counts_as", "12", "must be nothing or failure"),
        (CONTEXT_KNOBS, "top_k_patterns", "0", "patterns must be from 1 to 10"),
        (CONTEXT_KNOBS, "top_k_patterns", "2.5", "patterns must be a whole number"),
        (CONTEXT_KNOBS, "min_success_rate", "120%", "min rate must be a number from 0 to 1"),
        (CONTEXT_KNOBS, "max_tokens", "99", "tokens must be from 100 to 100000"),
        (CONTEXT_KNOBS, "order", "1", "order must be score or lower"),
        (CONTEXT_KNOBS, "include_anti_patterns", "", "anti must be on or off"),
    ):
        with pytest.raises(BadInput, match=f"^{reason}"):
            knobs[name].try_value(TODAY, text, TODAY)


def test_the_headline_is_empty_before_any_trial() -> None:
    assert "replaying" in headline(None, as_today=True).plain
    assert "current thresholds" in headline(replay(), as_today=True).plain
    assert "is invalid" in headline(replay(), as_today=True, faulty=True).plain
    assert replay_size(replay()).plain == "1,240 results replayed"
    assert nothing_turned(as_today=True).plain != nothing_turned(as_today=False).plain


def test_values_of_a_context_can_be_reset_and_every_step_changes_them() -> None:
    for name, knob in CONTEXT_KNOBS.items():
        assert knob.try_value(TODAY, knob.text(TODAY), TODAY) == TODAY, name
        assert len(knob.setting.label) <= 9, "has to fit into a third of 80 cells"
        for steps in (1, -1):
            settings = knob.try_value(TODAY, knob.stepped(TODAY, steps), TODAY)
            assert settings != TODAY, name
            for _ in range(30):
                settings = knob.try_value(settings, knob.stepped(settings, steps), TODAY)


def test_a_setting_between_two_steps_is_kept() -> None:
    odd = Settings(injection=InjectionSettings(top_k_patterns=0, max_tokens=7))
    for name in ("top_k_patterns", "max_tokens"):
        assert CONTEXT_KNOBS[name].try_value(odd, CONTEXT_KNOBS[name].text(odd), odd) == odd


VISITED = NOW - timedelta(days=9, hours=3)


async def open_compare(user: User) -> CompareScreen:
    await user.press("L", "H")
    await user.until(lambda: isinstance(user.place, CompareScreen) and bool(user.table.keys), "what changed")
    await user.settled()
    assert isinstance(user.place, CompareScreen)
    return user.place


async def test_lists_changes_since_the_last_visit_and_opens_their_records(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home, size=(100, 24)) as user:
        user.app.last_visit = VISITED
        await user.go("patterns")
        await open_compare(user)
        expected = compare_states(build_past_state(user.app.view, VISITED), user.app.view)
        first = expected.patterns[0]
        assert (user.field("since").text, user.field("until").text) == ("last visit", "now")
        assert user.table.keys[0] == f"pattern {first.pattern_id}"
        assert len(user.table.keys) == sum(
            map(len, (expected.patterns, expected.decisions, expected.loops, expected.questions))
        )
        await user.sees("Read-only", first.because, f"{expected.helped} uses worked", "decided by imre")
        await user.press("enter", "enter")
        await user.settled()
        assert isinstance(user.place, PatternsScreen)
        assert user.table.cursor_key == first.pattern_id
    saved = UserState(home / "state.json", "project")
    saved.load()
    assert saved.visit(LAST_VISIT) == iso(NOW)


async def test_an_open_or_killed_dashboard_counts_as_a_visit(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        assert user.app.last_visit is None, "the first session is not its own previous visit"
        saved = UserState(home / "state.json", "project")
        saved.load()
        assert saved.begin_visit(NOW + timedelta(hours=1)) == NOW


async def test_days_can_be_stepped_or_typed_and_invalid_days_are_reported(sample: Path, home: Path) -> None:
    async with open_dashboard(sample, home) as user:
        place = await open_compare(user)
        assert user.field("since").text == "2026-11-14"
        assert "first visit" in (place.why_not("last_visit") or "")
        await user.press("left", "left")
        assert user.field("since").text == "2026-11-12"
        two_days_earlier = datetime(2026, 11, 12, tzinfo=UTC)
        await user.until(lambda: place._found is not None and place._found.since == two_days_earlier, "2026-11-12")
        await user.type("99")
        await user.sees("Use 2026-11-15")
        await user.press("ctrl+u")
        await user.type("3d")
        await user.until(lambda: place._found is not None and place._found.since == NOW - timedelta(days=3), "3 days")
        await user.press("tab", "left")
        assert user.field("until").text == "2026-11-20"
        await user.until(lambda: place._found is not None and place._found.until < NOW, "another end")
        await user.press("left", "left", "left")
        await user.sees("must be before the other moment")
        await user.press("H")
        assert user.place.place == "log"


def counts(*numbers: int) -> Counts:
    return dict(zip(Maturity, numbers, strict=True))


BEFORE, AFTER = counts(11, 12, 10, 7), counts(14, 12, 7, 7)


def test_counts_before_and_after_have_glyph_word_and_number() -> None:
    lines = count_lines(BEFORE, AFTER, 60, DRAWN, short=False).plain.splitlines()
    assert [line.split("▮")[0].strip() for line in lines] == [
        "○ candidate   11 → 14 +3",
        "◐ established 12 → 12",
        "● proven      10 →  7 -3",
        "⊘ deprecated   7 →  7",
    ]
    assert [(line.count("▮"), line.count("▯")) for line in lines] == [(33, 0), (28, 0), (16, 8), (16, 0)]
    assert max(len(line) for line in lines) == 60
    short = count_lines(BEFORE, AFTER, 78, ASCII, short=True).plain.splitlines()
    assert [line.split() for line in short] == [
        ["o", "candidate", "11", "->", "14", "+3", "+", "established", "12", "->", "12"],
        ["*", "proven", "10", "->", "7", "-3", "x", "deprecated", "7", "->", "7"],
    ]


def test_counts_of_any_size_are_aligned() -> None:
    large, moved = counts(100_000, 0, 0, 0), counts(0, 100_000, 0, 0)
    lines = count_lines(large, moved, 60, DRAWN, short=False).plain.splitlines()
    assert len({line.index("→") for line in lines}) == 1
    assert "100,000 →       0 -100,000" in lines[0]
    assert count_lines(counts(0, 0, 0, 0), counts(0, 0, 0, 0), 60, DRAWN, short=False)
    assert "▮" not in count_lines(large, moved, 10, DRAWN, short=False).plain
