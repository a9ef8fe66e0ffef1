"""A delivered context is that of the preview, although most regexes of patterns are not matched for it."""

from __future__ import annotations

import random
from typing import Literal

import numpy as np
import pytest

import core.retrieval.relevance
from core.base.settings import InjectionSettings
from core.base.text import Matcher, safe_matcher
from core.records.patterns import Pattern, PatternType
from core.retrieval.injection import InjectedContext, prepare_context, prepare_injection
from core.retrieval.task import analyse_task
from tests.factories import NOW, days_ago, make_board, make_pattern, make_recorded_counts, rank
from tests.fence_token import FENCE_TOKEN

WORDS = (
    *("auth", "token", "session", "cart", "order", "null", "undefined", "cache"),
    *("retry", "timeout", "lock", "export", "report", "type", "index"),
)
ERRORS = ("TypeError", "ValueError", "TimeoutError", "")


def words(source: random.Random, count: int) -> str:
    return " ".join(source.choices(WORDS, k=count))


def some_pattern(source: random.Random, number: int) -> Pattern:
    """A pattern of any type; some share all fields that order them, some their text."""
    uses = source.randint(0, 3)
    regex = source.choice(("", words(source, 1), f"(?i){words(source, 1)}.*{words(source, 1)}", ".*", "(", "x{2000}"))
    return make_pattern(
        f"pat-{source.choice('abc')}-{number:03}",
        source.choice(list(PatternType)),
        title=words(source, 2),
        description=words(source, source.choice((1, 5, 60))),
        error_type=source.choice(ERRORS),
        error_pattern=regex,
        task_pattern=regex,
        places=source.choice(((), (), ("src/cart.py::test_cart",))),
        category=source.choice(("", "debugging", "implementation")),
        tags=tuple(source.sample(WORDS, 2)),
        average_iterations=source.choice((None, 2.0)),
        recorded_counts=make_recorded_counts(uses, source.randint(0, 1)),
        last_used=source.choice((NOW, days_ago(90))),
    )


@pytest.mark.parametrize("order", ["score", "lower-bound"])
@pytest.mark.parametrize("seed", range(12))
def test_a_delivered_context_is_that_of_the_preview(seed: int, order: Literal["score", "lower-bound"]) -> None:
    source = random.Random(seed)
    patterns = [some_pattern(source, number) for number in range(source.choice((3, 40, 700)))]
    found = {pattern.id: pattern for pattern in patterns}
    board = make_board(*patterns)
    settings = InjectionSettings(
        order=order, top_k_patterns=source.choice((1, 5, 20)), min_success_rate=source.choice((0.0, 0.5))
    )
    past = np.array([source.choice((0.0, 0.1, 0.7)) for _ in patterns]) if seed % 3 else None
    for _ in range(4):
        profile = analyse_task(
            f"{source.choice(ERRORS)} {words(source, source.randint(1, 6))} in src/cart.py test_cart"
        )
        preview = prepare_injection(profile, rank(profile, found, board, settings, past), token=FENCE_TOKEN)
        ranking = rank(profile, found, board, settings, past, defers_regexes=True)
        given = prepare_context(ranking, token=FENCE_TOKEN)
        assert given.context == preview.context
        assert given.pattern_ids == preview.pattern_ids
        assert given.pattern_ids or len(patterns) < 700


def deliver(task: str, patterns: list[Pattern]) -> InjectedContext:
    found = {pattern.id: pattern for pattern in patterns}
    limits = InjectionSettings(top_k_patterns=1)
    return prepare_context(rank(analyse_task(task), found, make_board(*patterns), limits, defers_regexes=True))


def test_a_regex_that_cannot_change_the_context_is_not_matched(monkeypatch: pytest.MonkeyPatch) -> None:
    matched: list[str] = []

    def record(source: str) -> Matcher:
        matched.append(source)
        return safe_matcher(source)

    monkeypatch.setattr(core.retrieval.relevance, "safe_matcher", record)
    task = "TypeError: cannot read the auth token of a null session"
    counts = make_recorded_counts(9, 0)
    first = make_pattern(
        "pat-error-first-001",
        title="Auth token",
        description="read the auth token of a null session",
        error_type="TypeError",
        error_pattern="auth token",
        recorded_counts=counts,
    )
    faint = make_pattern(
        "pat-error-faint-002", error_pattern="null", title="", description="null reports", recorded_counts=counts
    )
    assert deliver(task, [first, faint]).pattern_ids == (first.id,)
    assert matched == ["auth token"]
