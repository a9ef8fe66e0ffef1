"""The page of a context: its rows, their details, and what the settings change."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from msgspec.structs import replace

from core.base.paths import ProjectPaths
from core.base.prompt_text import Blocks
from core.base.settings import InjectionSettings, Settings
from core.cli.demo.sample import copy_sample
from core.index.contexts import prepare_task_injection
from core.index.project_state import ProjectState
from core.project.project import Project
from core.records.patterns import PatternType
from core.retrieval.injection import NOTHING_IN_COMMON, ChosenPattern, Injection, OmittedPattern
from core.retrieval.past_tasks import WordWeights
from core.retrieval.reflections import ReflectionLeftOut, ReflectionSection
from core.retrieval.relevance import SEMANTIC_WEIGHTS
from core.retrieval.task import analyse_task
from core.show.contexts import (
    MORE_PATTERNS,
    MORE_REFLECTIONS,
    Preview,
    context_cells,
    context_document,
    row_details,
)
from core.show.pages.document import Block, plain_text
from core.show.pages.markdown import blocks_markdown, to_markdown
from tests.tui.user import NOW

TASK = "Fix TypeScript type errors in user validation"
OWN = InjectionSettings()


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
        left_out=tuple(OmittedPattern(pattern_id=id, reason="limit of 1 reached", score=0.3) for id in left_out),
        matched_by="words",
    )


def preview(new: Injection, own: Injection, *ranking: str, settings: InjectionSettings = OWN) -> Preview:
    return Preview(settings, new, own, {id: rank for rank, id in enumerate(ranking, 1)})


def plain(blocks: Iterable[Block]) -> list[str]:
    """The blocks as lines of Markdown."""
    return blocks_markdown(blocks).replace("\\", "").splitlines()


def cells(preview: Preview, key: str, state: ProjectState) -> dict[str, str]:
    return {id: plain_text(parts) for id, parts in context_cells(preview, key, state).items()}


def test_a_preview_contains_the_context_now_and_under_the_other_order(view: ProjectState) -> None:
    same = Preview.prepare(view, TASK, OWN)
    assert not same.differs
    assert same.own.context == prepare_task_injection(view, TASK).context
    assert list(same.ranks) == [
        one.pattern_id for one in prepare_task_injection(view, TASK, replace(OWN, order="lower-bound")).chosen
    ]
    one = Preview.prepare(view, TASK, replace(OWN, top_k_patterns=1))
    assert one.own == same.own
    assert len(one.chosen) == 1


def test_a_row_has_rank_score_and_the_strongest_reason(view: ProjectState) -> None:
    found = preview(injection("x", "a", "b", left_out=("c",)), injection("x", "a", "c"), "b", "a")
    first, second = (cells(found, id, view) for id in "ab")
    assert [first[name] for name in ("rank", "other", "score", "title")] == [" 1", "2", "0.90", "a"]
    assert [second[name] for name in ("rank", "other")] == ["+2", "1"]
    removed = cells(found, "c", view)
    assert [removed[name] for name in ("rank", "score", "why")] == ["-", "0.30", "limit of 1 reached"]
    mixed = preview(replace(injection("x"), chosen=(chosen("a", words=0.1, error=0.4, tags=0.0),)), injection("x"))
    assert cells(mixed, "a", view)["rank"] == "+1"
    assert cells(mixed, "a", view)["other"] == "-", "the other order leaves it out"
    assert cells(mixed, "a", view)["why"] == "same error"


def test_a_row_is_called_by_the_title_of_its_pattern(view: ProjectState) -> None:
    found = preview(injection("x", "pat-error-type-mismatch-003"), injection("x"))
    assert cells(found, "pat-error-type-mismatch-003", view)["title"] == "Type '…' is not assignable to type '…'"


def test_one_row_summarises_all_that_resemble_the_task_too_little(view: ProjectState) -> None:
    weak = [ReflectionLeftOut(id=id, text=id, reason="weak match 0.10 (at least 0.25)", score=0.1) for id in "rs"]
    omitted = [OmittedPattern(pattern_id=id, reason=NOTHING_IN_COMMON, score=0.0) for id in "de"]
    whole = replace(injection("x", "a"), left_out=tuple(omitted), reflections=ReflectionSection(left_out=tuple(weak)))
    found = preview(whole, injection("x"))
    assert found.list_rows() == ("a", MORE_PATTERNS, MORE_REFLECTIONS)
    assert cells(found, MORE_PATTERNS, view)["title"] == "and 2 patterns"
    assert cells(found, MORE_REFLECTIONS, view)["why"] == "weak match, below 0.25"
    assert found.list_rows({MORE_REFLECTIONS}) == ("a", MORE_PATTERNS, "reflection/r", "reflection/s")
    one = preview(replace(whole, left_out=tuple(omitted[:1])), injection("x"))
    assert one.list_rows() == ("a", "d", MORE_REFLECTIONS), "a single one needs no summary"


def test_rows_show_the_ranking_value_and_details_the_rank_in_the_other_order(view: ProjectState) -> None:
    pattern_id = "pat-error-type-mismatch-003"
    lower = replace(OWN, order="lower-bound")
    found = preview(injection("x", pattern_id, left_out=("c",)), injection("x"), settings=lower)
    assert [cells(found, id, view)["score"] for id in (pattern_id, "c")] == ["0.12", ""]
    assert any(
        "number 1 by lower bound, left out by score (0.90)" in text
        for text in plain(row_details(found, pattern_id, view))
    )


def test_details_have_every_part_of_the_score_with_its_maximum(view: ProjectState) -> None:
    pattern = view.pattern("pat-error-type-mismatch-003")
    parts = dict.fromkeys(SEMANTIC_WEIGHTS[PatternType.ERROR], 0.0) | {"meaning": 0.3, "error": 0.19}
    del parts["tags"]  # it is not known
    found = preview(replace(injection("x"), chosen=(chosen(pattern.id, **parts),)), injection("x"), "z", pattern.id)
    lines = plain(row_details(found, pattern.id, view))
    assert "0.90 = 0.49 relevance x 0.94 success x 1.5 proven" in lines[1]
    assert [line for line in lines if line.startswith("| ") and " of " in line] == [
        "| semantic |  | 0.30 of 0.61 |",
        "| words |  | 0.00 of 0.10 |",
        "| error |  | 0.19 of 0.19 |",
        "| category |  | 0.00 of 0.02 |",
        "| tags |  | 0.00 of 0.04 |",
        "| language |  | 0.00 of 0.04 |",
    ]
    assert lines[-1] == pattern.id, "the ID is behind all that one reads"


def test_parts_by_learned_weights_name_the_past_tasks(view: ProjectState, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = {kind: {"words": 0.7, "error": 0.3} for kind in PatternType}
    monkeypatch.setattr(ProjectState, "word_weights", WordWeights(weights, 78))
    pattern = view.pattern("pat-error-type-mismatch-003")
    by_words, by_meaning = ({"words": 0.35, "error": 0.0}, {"meaning": 0.3, "words": 0.0, "error": 0.0})
    texts = []
    for parts in (by_words, by_meaning):
        found = preview(replace(injection("x"), chosen=(chosen(pattern.id, **parts),)), injection("x"), "z", pattern.id)
        texts.append("\n".join(plain(row_details(found, pattern.id, view))))
    assert "0.35 of 0.70" in texts[0] and "weights fitted to 78 past tasks" in texts[0]
    assert "fitted" not in texts[1]


def test_an_omitted_pattern_shows_the_reason(view: ProjectState) -> None:
    pattern = view.pattern("pat-error-type-mismatch-003")
    found = preview(injection("", left_out=(pattern.id,)), injection(""))
    text = "\n".join(plain(row_details(found, pattern.id, view)))
    assert "left out: limit of 1 reached" in text and "Its score would be 0.30" in text


def test_a_narrow_row_has_the_head_of_a_reason(view: ProjectState) -> None:
    preview = Preview.prepare(view, TASK, OWN)
    shorter = {}
    for key in preview.left_out:
        whole = cells(preview, key, view)["why"]
        shorter[whole] = plain_text(context_cells(preview, key, view, 18)["why"])
        assert whole.startswith(shorter[whole])
        assert len(whole) > 18 or shorter[whole] == whole
    assert {"deprecated", "in quarantine"} <= set(shorter.values())


def test_the_page_has_the_exact_text_and_the_reason_for_each_row(view: ProjectState) -> None:
    found = Preview.prepare(view, TASK, OWN)
    page = to_markdown(context_document(found, view, TASK))
    assert found.injection.context.strip() in page
    assert f"{found.injection.tokens:,} of 2,000 tokens" in page
    assert page.index("## In it") < page.index("## Left out") < page.index("limit of 5 reached")
    assert "patterns | nothing in common |" in page


def test_hostile_text_adds_no_lines_and_no_control_codes(view: ProjectState) -> None:
    hostile = "a\x1b[31m\nb"
    found = preview(injection(f"{hostile}\n", hostile), injection("x\n", hostile))
    assert all("\x1b" not in line and "\n" not in line for _sign, line in found.lines)
    assert "\x1b" not in to_markdown(context_document(found, view, hostile))
