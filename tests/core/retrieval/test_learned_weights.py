"""Weights of the parts are fitted to the tasks in which patterns worked."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from core.records.loops import Loop
from core.records.patterns import Pattern, PatternType
from core.retrieval.learned_weights import (
    LARGEST_CHANGE,
    MIN_PATTERNS,
    MIN_TASKS,
    FitInputs,
    WordWeights,
    learn_weights,
)
from core.retrieval.past_tasks import PastTasks, SuccessfulTask
from core.retrieval.relevance import WEIGHTS
from tests.factories import make_pattern

TOPICS = ("invoice", "basket", "voucher", "refund", "shipping", "login", "avatar", "report", "search", "calendar")
assert len(TOPICS) == MIN_PATTERNS
KINDS = tuple(PatternType)


def make_patterns() -> dict[str, Pattern]:
    """One pattern about each topic, of all types."""
    made = (
        make_pattern(f"pat-{topic}-001", KINDS[number % 4], title=f"Repair the {topic}", category="testing")
        for number, topic in enumerate(TOPICS)
    )
    return {pattern.id: pattern for pattern in made}


def make_past(count: int = MIN_TASKS) -> PastTasks:
    """Tasks of patterns that share their topic with them; all have a category that fits every pattern."""
    tasks = []
    for number in range(count):
        topic = TOPICS[number % len(TOPICS)]
        loop = Loop(id=f"loop-{number}", task=f"Test the {topic} of customer{number}")
        tasks.append(SuccessfulTask.of(loop, (f"pat-{topic}-001",)))
    return PastTasks(tuple(tasks))


def test_with_few_past_tasks_the_weights_are_the_default_ones() -> None:
    patterns = make_patterns()
    assert learn_weights(PastTasks(), patterns) == WordWeights()
    assert learn_weights(make_past(MIN_TASKS - 1), patterns) == WordWeights() == (WEIGHTS, 0)


def test_with_few_patterns_the_weights_are_the_default_ones() -> None:
    patterns = make_patterns()
    del patterns["pat-invoice-001"]
    assert learn_weights(make_past(), patterns) == WordWeights()


def test_a_part_that_finds_the_right_pattern_counts_more() -> None:
    learned = learn_weights(make_past(), make_patterns())
    assert learned.tasks == MIN_TASKS
    for kind, weights in learned.by_type.items():
        assert weights["words"] > WEIGHTS[kind]["words"]
        assert weights["category"] < WEIGHTS[kind]["category"]


def test_learned_weights_sum_to_one_and_stay_near_the_default_ones() -> None:
    learned = learn_weights(make_past(), make_patterns()).by_type
    assert learned.keys() == WEIGHTS.keys()
    for kind, weights in learned.items():
        assert weights.keys() == WEIGHTS[kind].keys()
        assert sum(weights.values()) == pytest.approx(1.0)
        factors = [weight / WEIGHTS[kind][name] for name, weight in weights.items()]
        assert max(factors) / min(factors) <= LARGEST_CHANGE**2 * (1 + 1e-9)


def test_the_order_of_patterns_does_not_matter() -> None:
    patterns = make_patterns()
    reverse = dict(reversed(patterns.items()))
    assert learn_weights(make_past(), patterns) == learn_weights(make_past(), reverse)


def test_other_patterns_do_not_matter() -> None:
    patterns = make_patterns()
    more = patterns | {f"pat-more-{number}": make_pattern(f"pat-more-{number}") for number in range(5)}
    assert learn_weights(make_past(), patterns) == learn_weights(make_past(), more)


def test_only_other_tasks_and_texts_of_patterns_need_other_weights() -> None:
    patterns, past = make_patterns(), make_past()

    def digest(past: PastTasks, patterns: dict[str, Pattern]) -> bytes | None:
        inputs = FitInputs.of(past, patterns)
        return inputs.digest if inputs is not None else None

    known = digest(past, patterns)
    counted = {id: replace(pattern, trend=()) for id, pattern in patterns.items()}
    assert digest(make_past(), counted | {"pat-other": make_pattern("pat-other")}) == known
    assert (
        digest(past, patterns | {"pat-invoice-001": replace(patterns["pat-invoice-001"], content_hash="new")}) != known
    )
    assert digest(make_past(MIN_TASKS + 1), patterns) != known
