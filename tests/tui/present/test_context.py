from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.content import Content

from core.base.context_blocks import Blocks
from core.base.errors import BadInput
from core.config.paths import ProjectPaths
from core.config.settings import InjectionSettings, Settings
from core.demo.sample import copy_sample
from core.project.project import Injected, Project
from core.records.loops import Outcome
from core.records.patterns import PatternType
from core.retrieval.injection import ChosenPattern, Injection, OmittedPattern
from core.retrieval.past_tasks import WordWeights
from core.retrieval.reflections import ChosenReflection, ReflectionSection
from core.retrieval.relevance import SEMANTIC_WEIGHTS
from core.retrieval.task import analyse_task
from core.state.contexts import prepare_task_injection
from core.state.project_state import ProjectState
from tests.tui.user import NOW
from tui.present import context as present
from tui.present.context_recording import recorded_toast
from tui.present.glyphs import ASCII, DRAWN
from tui.present.knobs import KNOBS

TASK = "Fix TypeScript type errors in user validation"
OWN = InjectionSettings()
PROJECT = Settings()


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> ProjectState:
    folder = tmp_path_factory.mktemp("sample")
    copy_sample(folder, NOW)
    return Project(ProjectPaths(folder), Settings(), by="ana", clock=lambda: NOW, cache=False).load()


def chosen(pattern_id: str, **parts: float) -> ChosenPattern:
    return ChosenPattern(
        pattern_id=pattern_id,
        type=PatternType.ERROR,
        score=0.9,
        relevance=sum(parts.values()),
        effectiveness=0.94,
        multiplier=1.5,
        parts=parts,
        successes=17,
        failures=1,
        level=0.9,
        voice="unreviewed",
    )


def injection(context: str, *ids: str, left_out: tuple[str, ...] = ()) -> Injection:
    return Injection(
        profile=analyse_task(TASK),
        blocks=Blocks(unreviewed=context),
        token="",
        context=context,
        tokens=1,
        bytes=len(context),
        chosen=tuple(chosen(id, words=0.1) for id in ids),
        left_out=tuple(OmittedPattern(pattern_id=id, reason="below the top 1 (0.30)", score=0.3) for id in left_out),
        matched_by="words",
    )


def preview(new: Injection, own: Injection, *ranking: str, settings: InjectionSettings = OWN) -> present.Preview:
    return present.Preview(settings, new, own, {id: rank for rank, id in enumerate(ranking, 1)})


def plain(lines: list[Content]) -> str:
    return "\n".join(line.plain for line in lines)


# Knobs


@pytest.mark.parametrize("name", KNOBS)
def test_a_changed_value_shows_the_projects_value_and_can_be_reset(name: str) -> None:
    knob = KNOBS[name]
    assert knob.try_value(PROJECT, knob.text(PROJECT), PROJECT) == PROJECT
    assert len(knob.setting.label) <= 9, "has to fit into a third of 80 cells"


@pytest.mark.parametrize("name", KNOBS)
@pytest.mark.parametrize("steps", [1, -1])
def test_every_step_changes_the_value_until_the_last_one(name: str, steps: int) -> None:
    knob = KNOBS[name]
    once = knob.try_value(PROJECT, knob.stepped(PROJECT, steps), PROJECT)
    assert once != PROJECT
    settings = PROJECT
    for _ in range(30):
        settings = knob.try_value(settings, knob.stepped(settings, steps), PROJECT)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("top_k_patterns", "0", "patterns must be from 1 to 10"),
        ("top_k_patterns", "2.5", "patterns must be a whole number"),
        ("min_success_rate", "120%", "min rate must be a number from 0 to 1"),
        ("max_tokens", "99", "tokens must be from 100 to 100000"),
        ("order", "1", "order must be score or lower"),
        ("include_anti_patterns", "", "anti must be on or off"),
    ],
)
def test_an_invalid_value_is_refused_with_the_reason(name: str, text: str, reason: str) -> None:
    with pytest.raises(BadInput, match=f"^{reason}"):
        KNOBS[name].try_value(PROJECT, text, PROJECT)


def test_a_setting_between_two_steps_is_kept() -> None:
    odd = Settings(injection=InjectionSettings(top_k_patterns=0, max_tokens=7))
    for name in ("top_k_patterns", "max_tokens"):
        assert KNOBS[name].try_value(odd, KNOBS[name].text(odd), odd) == odd


# What differs


def test_each_line_is_marked_as_added_or_removed() -> None:
    found = preview(injection("one\ntwo\nfour\n", "a", "b"), injection("one\nthree\nfour\n", "a", "c"))
    assert found.lines == ((" ", "one"), ("-", "three"), ("+", "two"), (" ", "four"))
    lines, marks = present.difference(found)
    assert [mark.plain + line.plain for mark, line in zip(marks, lines, strict=True)] == [
        "  one",
        "- three",
        "+ two",
        "  four",
    ]
    assert present.difference_line(found).plain == "+1 -1 lines, 1 pattern added, 1 removed"
    assert [found.change_sign(id) for id in "abc"] == ["", "+", "-"]


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (injection("x\ny\n", "a", "b", "c"), "+1 -0 lines, 2 patterns added"),
        (injection("y\n"), "+1 -1 lines, 1 pattern removed"),
        (injection("y\n", "a"), "+1 -1 lines"),
        (injection("x\n", "a"), "the text stays the same"),
    ],
)
def test_differences_are_counted(new: Injection, expected: str) -> None:
    assert present.difference_line(preview(new, injection("x\n", "a"))).plain == expected


def test_a_preview_contains_the_context_now_and_under_the_other_order(view: ProjectState) -> None:
    same = present.Preview.prepare(view, TASK, OWN)
    assert not same.differs
    assert same.own.context == prepare_task_injection(view, TASK).context
    assert list(same.ranks) == [
        one.pattern_id for one in prepare_task_injection(view, TASK, replace(OWN, order="lower-bound")).chosen
    ]
    one = present.Preview.prepare(view, TASK, replace(OWN, top_k_patterns=1))
    assert one.own == same.own
    assert len(one.chosen) == 1


# Scores


def test_a_row_has_rank_score_and_the_largest_parts_first() -> None:
    found = preview(injection("x", "a", "b", left_out=("c",)), injection("x", "a", "c"), "b", "a")
    first, second = (present.score_cells(found, id, DRAWN) for id in "ab")
    assert [first[name].plain for name in ("rank", "other", "score", "id")] == [" 1", "2", "0.90", "a"]
    assert [second[name].plain for name in ("rank", "other")] == ["+2", "1"]
    removed = present.score_cells(found, "c", ASCII)
    assert [removed[name].plain for name in ("rank", "score", "why")] == ["-", "0.30", "below the top 1 (0.30)"]
    mixed = preview(replace(injection("x"), chosen=(chosen("a", words=0.1, error=0.4, tags=0.0),)), injection("x"))
    assert present.score_cells(mixed, "a", ASCII)["rank"].plain == "+1"
    assert present.score_cells(mixed, "a", ASCII)["other"].plain == "-", "the other order leaves it out"
    assert present.score_cells(mixed, "a", ASCII)["why"].plain.strip() == "error 0.40  words 0.10"


def test_rows_show_the_ranking_value_and_details_the_rank_in_the_other_order(view: ProjectState) -> None:
    pattern = view.pattern("pat-error-type-mismatch-003")
    lower = replace(OWN, order="lower-bound")
    found = preview(injection("x", pattern.id, left_out=("c",)), injection("x"), settings=lower)
    assert [present.score_cells(found, id, DRAWN)["score"].plain for id in (pattern.id, "c")] == ["0.12", ""]
    text = plain(present.detail_lines(found, pattern, view, DRAWN, short=True))
    assert "rank 1, by score 0.90 left out" in text.splitlines()


def test_an_empty_context_is_explained() -> None:
    for left_out, reason in (
        ((), "There are no patterns yet."),
        (("c",), "The list shows the reason for each pattern."),
    ):
        found = injection("", left_out=left_out)
        assert plain(present.context_lines(found)) == f"Nothing is injected for this task.\n{reason}"


def test_parts_of_a_score_are_drawn_against_their_maximum(view: ProjectState) -> None:
    pattern = view.pattern("pat-error-type-mismatch-003")
    parts = dict.fromkeys(SEMANTIC_WEIGHTS[PatternType.ERROR], 0.0) | {"meaning": 0.3, "error": 0.19}
    found = preview(replace(injection("x"), chosen=(chosen(pattern.id, **parts),)), injection("x"), "z", pattern.id)
    text = plain(present.detail_lines(found, pattern, view, ASCII, short=False))
    assert text.splitlines() == [
        pattern.id,
        pattern.title,
        "0.90 = 0.49 relevance x 0.94 success x 1.5 * proven",
        "rank 1, by lower bound 0.59 rank 2",
        "block unreviewed",
        "semantic #####----- 0.30 of 0.60",
        "words    ---------- 0.00 of 0.10",
        "error    ########## 0.19 of 0.19",
        "category ---------- 0.00 of 0.03",
        "tags     ---------- 0.00 of 0.04",
        "language ---------- 0.00 of 0.04",
    ]
    short = present.detail_lines(found, pattern, view, ASCII, short=True)
    assert max(map(len, plain(short[:8]).splitlines())) <= 37, "has to fit beside the list in 80 cells"


def test_parts_by_learned_weights_name_the_past_tasks(view: ProjectState, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {kind: {"words": 0.7, "error": 0.3} for kind in PatternType}
    monkeypatch.setattr(ProjectState, "word_weights", WordWeights(weights, 78))
    pattern = view.pattern("pat-error-type-mismatch-003")
    by_words, by_meaning = ({"words": 0.35, "error": 0.0}, {"meaning": 0.3, "words": 0.0, "error": 0.0})
    texts = []
    for parts in (by_words, by_meaning):
        found = preview(replace(injection("x"), chosen=(chosen(pattern.id, **parts),)), injection("x"), "z", pattern.id)
        texts.append(plain(present.detail_lines(found, pattern, view, ASCII, short=True)))
    assert "0.35 of 0.70" in texts[0] and "weights fitted to 78 past tasks" in texts[0]
    assert "learned" not in texts[1]


def test_an_omitted_pattern_shows_the_reason(view: ProjectState) -> None:
    pattern = view.pattern("pat-error-type-mismatch-003")
    found = preview(injection("", left_out=(pattern.id,)), injection(""))
    text = plain(present.detail_lines(found, pattern, view, DRAWN, short=False))
    assert "left out: below the top 1 (0.30)" in text
    assert "Its score would be 0.30" in text


def test_hostile_text_adds_no_lines_and_no_control_codes() -> None:
    hostile = "a\x1b[31m\nb"
    found = preview(injection(f"{hostile}\n", hostile), injection("x\n", hostile))
    assert all("\x1b" not in line and "\n" not in line for _sign, line in found.lines)
    for content in (*present.score_cells(found, hostile, DRAWN).values(), *present.context_lines(found.injection)):
        assert "\x1b" not in content.plain and "\n" not in content.plain


# A loop's record


@pytest.mark.parametrize(
    ("patterns", "reflections", "expected"),
    [
        (2, 1, "recorded: 2 patterns and 1 reflection injected into loop-1. y copies the text"),
        (1, 0, "recorded: 1 pattern injected into loop-1; 2 already recorded. y copies the text"),
        (0, 0, "already recorded: 2 patterns and 1 reflection injected into loop-1"),
    ],
)
def test_a_record_of_an_injection_names_what_is_new(patterns: int, reflections: int, expected: str) -> None:
    learned = ChosenReflection(
        id="refl-1",
        text="Types first",
        title="Fix login",
        outcome=Outcome.SUCCESS,
        draft=False,
        sources=("ralph-a",),
        same_ids=("refl-1",),
        score=0.5,
        relevance=0.5,
        outcome_factor=1.0,
        decay=1.0,
        parts={"task": 0.5, "learning": 0.0},
        is_semantic=False,
    )
    injected = replace(injection("x", "pat-a", "pat-b"), reflections=ReflectionSection(chosen=(learned,)))
    new = Injected(("x",) * patterns, ("y",) * reflections)
    assert recorded_toast(new, injected, "loop-1") == expected
