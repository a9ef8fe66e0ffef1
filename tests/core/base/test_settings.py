"""Settings of projects and the user's own: validation with field and value, and effect on states."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import BadInput
from core.base.paths import ProjectPaths
from core.base.settings import (
    THRESHOLDS,
    AntiPatternSettings,
    ExtractionSettings,
    InjectionSettings,
    LearningSettings,
    MaturitySettings,
    PruningSettings,
    Setting,
    Settings,
    Unit,
    WatchSettings,
    find_threshold,
    with_threshold,
)
from core.base.user_settings import UserSettings, read_user_settings, user_settings_file
from core.base.validation import MIN_HALF_LIFE
from core.cli.demo.sample import copy_sample
from core.index.refresh import Index
from core.learning.scoreboard import Scoreboard
from core.learning.threshold_replay import what_if

NAN = float("nan")


GROUPS: tuple[Any, ...] = (
    *(LearningSettings, MaturitySettings, AntiPatternSettings, ExtractionSettings),
    *(InjectionSettings, PruningSettings, WatchSettings),
)


def test_invalid_values_are_refused_with_the_field() -> None:
    rows: list[object] = [NAN, -1, float("inf"), "0.6", None, True]
    for value in rows:
        for kind in GROUPS:
            for field in kind.__struct_fields__:
                if field == "anti_pattern_prefix" or (value is True and isinstance(getattr(kind(), field), bool)):
                    continue
                with pytest.raises(BadInput, match=field):
                    kind(**{field: value})


def test_values_out_of_bounds_are_refused_with_the_bounds() -> None:
    no_weights: dict[str, Any] = {"success_weight": 0, "duration_weight": 0, "errors_weight": 0}
    prefix = "anti_pattern_prefix must be a text of 1 to 40 visible characters"
    rows: list[tuple[Any, dict[str, Any], str]] = [
        (MaturitySettings, {"max_harmful": 1.5}, r"max_harmful must be a number from 0 to 1, not 1\.5"),
        (LearningSettings, {"half_life_days": 0}, "half_life_days must be a number of days above 0, not 0"),
        (LearningSettings, {"half_life_days": 5e-324}, "half_life_days must be a number of days above 0, not 5e-324"),
        (LearningSettings, {**no_weights, "retries_weight": 0}, "retries_weight cannot all be 0"),
        (WatchSettings, {"stale_after_minutes": 1e300}, "must be a number from 0 to 1,000,000,000"),
        (WatchSettings, {"poll_seconds": 0}, r"poll_seconds must be a number from 0\.05 to 86,400, not 0"),
        (PruningSettings, {"prune_interval_days": 36_501}, "must be a whole number from 0 to 36,500"),
        (Settings, {"interval_level": 1.5}, "interval_level must be a number from 0 to 1"),
        *(
            (AntiPatternSettings, {"anti_pattern_prefix": odd}, prefix)
            for odd in ("", "  ", "a\nb", "a\x1b[2J", "a\u202eb", "x" * 41, 3)
        ),
    ]
    for kind, fields, message in rows:
        with pytest.raises(BadInput, match=message):
            kind(**fields)
    assert MaturitySettings(max_harmful=0, deprecation_threshold=1).max_harmful == 0
    assert LearningSettings(**no_weights).retries_weight


NOW = datetime(2026, 11, 21, 21, 0, tzinfo=UTC)
DEFAULTS = Settings()


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Scoreboard:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    index = Index(ProjectPaths(folder), DEFAULTS, clock=lambda: NOW, is_kept=False)
    board = Scoreboard.build(index.load(), NOW, DEFAULTS)
    assert what_if(with_threshold(DEFAULTS, "maturity.half_life_days", "1"), board.history).turns
    return board


def named(known: Setting) -> str:
    return known.name


def test_every_setting_of_the_three_groups_is_a_threshold() -> None:
    fields = [
        f"{group}.{field}"
        for group in ("learning", "maturity", "anti_pattern")
        for field in getattr(DEFAULTS, group).__struct_fields__
    ]
    assert sorted(map(named, THRESHOLDS)) == sorted(set(fields) - {"anti_pattern.anti_pattern_prefix"})


def test_text_and_parse_are_inverse_for_defaults() -> None:
    for known in THRESHOLDS:
        assert with_threshold(DEFAULTS, known.name, known.text(DEFAULTS)) == DEFAULTS, known


@pytest.mark.parametrize("known", [known for known in THRESHOLDS if not known.replayed], ids=named)
def test_settings_that_are_not_replayed_change_no_state(known: Setting, history: Scoreboard) -> None:
    assert not what_if(with_threshold(DEFAULTS, known.name, "1"), history.history).turns


def test_a_text_sets_one_field() -> None:
    for name, text, value in (
        ("maturity.half_life_days", "30", 30.0),
        ("maturity.max_harmful", "0.2", 0.2),
        ("max_harmful", "20%", 0.2),
        ("min_helpful", " 2.5 ", 2.5),
        ("max_marks", "8", 8),
        ("fast_completion_threshold_ms", "60000", 60_000.0),
        ("neutral_counts_as", "failure", "failure"),
        ("anti_pattern.min_observations", "0", 0),
        ("multiplier_proven", "3", 3.0),
    ):
        known = find_threshold(name)
        changed = with_threshold(DEFAULTS, name, text)
        assert known.value(changed) == value, name
        assert all(other.value(changed) == other.value(DEFAULTS) for other in THRESHOLDS if other is not known), name


def test_invalid_texts_are_refused_with_the_name() -> None:
    for name, text in (
        ("maturity.half_life_days", "0"),
        ("maturity.half_life_days", "-1"),
        ("maturity.half_life_days", "nan"),
        ("maturity.half_life_days", "inf"),
        ("maturity.half_life_days", "soon"),
        ("maturity.half_life_days", ""),
        ("max_harmful", "1.01"),
        ("max_harmful", "101%"),
        ("max_harmful", "%"),
        ("success_weight", "-0.1"),
        ("max_marks", "2.5"),
        ("max_marks", "-1"),
        ("max_marks", "9" * 5000),
        ("burst_minutes", "1e300"),
        ("min_feedback", "1e999"),
        ("neutral_counts_as", "success"),
    ):
        with pytest.raises(BadInput, match=rf"{name}.* must be .*, not ") as error:
            with_threshold(DEFAULTS, name, text)
        assert len(str(error.value)) < 200, name


def test_an_unknown_or_ambiguous_name_suggests_names() -> None:
    for name, message in {
        "half_life_days": r"maturity\.half_life_days or learning\.half_life_days",
        "maturity.min_helpfull": r"did you mean .*maturity\.min_helpful",
        "min_helpfull": r"did you mean .*maturity\.min_helpful",
        "maturity.helpful": r"did you mean .*maturity\.min_helpful",
    }.items():
        with pytest.raises(BadInput, match=message):
            find_threshold(name)


def test_an_unknown_name_shows_nothing_raw() -> None:
    with pytest.raises(BadInput) as error:
        find_threshold("\x1b[31m\nevil" * 100_000)
    message = str(error.value)
    assert "\x1b" not in message and "\n" not in message
    assert len(message) < 200


@given(st.sampled_from(THRESHOLDS), st.floats(MIN_HALF_LIFE, 1))
def test_text_and_parse_are_inverse(known: Setting, value: float) -> None:
    if known.unit in (Unit.CHOICE, Unit.COUNT):
        return
    changed = with_threshold(DEFAULTS, known.name, repr(value))
    assert known.value(changed) == value
    assert with_threshold(DEFAULTS, known.name, known.text(changed)) == changed


@given(st.sampled_from(THRESHOLDS), st.text())
def test_any_text_is_parsed_or_refused(known: Setting, text: str) -> None:
    try:
        with_threshold(DEFAULTS, known.name, text)
    except BadInput as error:
        assert str(error).startswith(known.name)


@pytest.fixture
def write(request: pytest.FixtureRequest) -> Callable[[bytes], int]:
    file = user_settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    request.addfinalizer(lambda: file.unlink(missing_ok=True))
    return file.write_bytes


def test_values_of_the_file_are_used(write: Callable[[bytes], int]) -> None:
    write(b'[trust]\nclaims = "candidate"\n[decisions]\nscripts = "none"\n[scan]\njudge = ["judge", "--json"]\n')
    settings = read_user_settings()
    assert (settings.trust.claims, settings.decisions.scripts) == ("candidate", "none")
    assert settings.scan.judge == ("judge", "--json")
    assert not settings.findings


def test_a_finding_names_the_setting_its_value_and_the_valid_ones_and_other_groups_apply(
    write: Callable[[bytes], int],
) -> None:
    assert read_user_settings() == UserSettings(), "no file"
    for text, parts in (
        (b'[trust]\nclaims = "maybe"\n', ("trust.claims", "'maybe'", "count", "candidate")),
        (b"[trust]\nclaim = 1\n", ("trust.claim ", "claims")),
        (b"[trusts]\n", ("trusts",)),
        (b'[scan]\nextracted = "never"\n', ("scan.extracted", "'never'", "hold", "flag", "block", "by-type")),
        (b'[scan]\njudge = "judge"\n', ("scan.judge", "'judge'", "list")),
        (b"decisions = 3\n", ("decisions", "3", "group")),
        (b"not toml", ()),
        (b"\xff\xfe", ()),
    ):
        write(text)
        settings = read_user_settings()
        (finding,) = settings.findings
        assert [part for part in parts if part not in finding.message] == [], text
        assert settings.trust.claims == "count", text
        write(b'[decisions]\nscripts = "all"\n' + text)
        if text.startswith(b"["):
            assert read_user_settings().decisions.scripts == "all", text
