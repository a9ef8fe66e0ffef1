from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

import core.learning
from core.base.errors import BadInput
from core.learning.inversion import ObservedPattern, extract_strategies, invert, record_observation
from core.learning.maturity import MaturityFeedback, PatternMaturity, create_maturity, deprecate, multiplier
from core.learning.outcomes import CriterionWeight, FeedbackEvent, OutcomeSignals, apply_weights
from core.learning.storage import ErrorAccumulator, ErrorEntry
from core.records.patterns import Maturity

PAGE = Path(__file__).parents[3] / "docs" / "learning-api.md"
RECIPES = re.findall(r"^## (\w+)\n(?:(?!## ).*\n)*?```python\n((?:.*\n)*?)```", PAGE.read_text(), re.MULTILINE)


def test_each_example_of_the_page_runs_as_printed() -> None:
    assert [title for title, _ in RECIPES] == ["Outcomes", "Criteria", "Maturity", "Inversion", "Errors"]
    for title, code in RECIPES:
        exec(compile(code, f"{PAGE.name}#{title.lower()}", "exec"), {})  # noqa: S102


def test_every_public_name_can_be_imported() -> None:
    assert len(set(core.learning.__all__)) == len(core.learning.__all__)
    for name in core.learning.__all__:
        assert getattr(core.learning, name).__module__.startswith("core.learning.")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        core.learning.no_such_name  # noqa: B018


NOW: Final = "2026-02-03T12:00:00Z"
GOOD: Final[dict[type, dict[str, Any]]] = {
    MaturityFeedback: {"pattern_id": "p", "type": "helpful", "timestamp": NOW},
    PatternMaturity: {"pattern_id": "p", "as_of": NOW},
    FeedbackEvent: {"criterion": "c", "type": "helpful", "timestamp": NOW},
    CriterionWeight: {"criterion": "c", "weight": 1.0, "helpful_count": 0, "harmful_count": 0},
    ObservedPattern: {"id": "p", "content": "Split"},
    ErrorEntry: {"id": "e", "bead_id": "b", "timestamp": NOW, "error_type": "timeout", "message": "m"},
    OutcomeSignals: {"bead_id": "b", "success": True, "timestamp": NOW},
}
WRONG: Final[dict[type, dict[str, tuple[Any, ...]]]] = {
    MaturityFeedback: {"pattern_id": (None, 5), "type": (None, []), "timestamp": (None, [], "soon"), "weight": ("1",)},
    PatternMaturity: {
        "pattern_id": (None,),
        "as_of": (None, "soon"),
        "state": (None, "foo", []),
        "pin": ("foo", 1),
        "reason": (None,),
        "promoted_at": ("soon",),
        "deprecated_at": (1.5j,),
        "last_validated": ("soon",),
    },
    FeedbackEvent: {"id": (5,), "criterion": (5, None), "bead_id": (None,), "context": (b"x",), "timestamp": (None,)},
    CriterionWeight: {"criterion": (None,), "weight": ("1",), "last_validated": ("soon",)},
    ObservedPattern: {
        "id": (None,),
        "content": (None, 5),
        "reason": (None,),
        "tags": ("abc", (1,)),
        "example_beads": (None,),
        "kind": (None,),
        "is_negative": (1, None),
        "created_at": ("soon",),
        "updated_at": ([],),
    },
    ErrorEntry: {
        "id": (None,),
        "bead_id": (None,),
        "error_type": (None, [], "x"),
        "message": (None,),
        "context": (1,),
        "stack_trace": (None,),
        "tool_name": (None,),
        "resolved": ("no",),
        "timestamp": (None,),
    },
    OutcomeSignals: {
        "bead_id": (None,),
        "success": (1,),
        "timestamp": (None,),
        "strategy": (None,),
        "failure_mode": (5,),
        "failure_details": (None,),
        "files_touched": ("src/a.ts", (None,)),
    },
}
CALLS: Final[dict[str, Callable[[], object]]] = {
    "state": lambda: multiplier("foo"),
    "reason": lambda: deprecate(create_maturity("p", NOW), None, NOW),  # type: ignore[arg-type]
    "weight of 'a'": lambda: apply_weights({"a": 1}, {"a": 0.5}),  # type: ignore[dict-item]
    "description": lambda: extract_strategies(None),  # type: ignore[arg-type]
    "bead_id": lambda: ErrorAccumulator().record_error(None, "timeout", "m", now=NOW),  # type: ignore[arg-type]
    "message": lambda: ErrorAccumulator().record_error("b", "timeout", None, now=NOW),  # type: ignore[arg-type]
    "pattern_id": lambda: create_maturity(None, NOW),  # type: ignore[arg-type]
    "success": lambda: record_observation(ObservedPattern(id="p", content="x"), None, NOW),  # type: ignore[arg-type]
    "reason ": lambda: invert(ObservedPattern(id="p", content="x"), None, NOW),  # type: ignore[arg-type]
}


def test_a_value_of_another_type_is_refused_by_name() -> None:
    for kind in GOOD:
        kind(**GOOD[kind])
        for field, values in WRONG[kind].items():
            for value in values:
                with pytest.raises(BadInput, match=rf"^{field} must be .*, not "):
                    kind(**{**GOOD[kind], field: value})


def test_an_argument_of_another_type_is_refused_by_name() -> None:
    for field in CALLS:
        with pytest.raises(BadInput, match=rf"^{field.strip()} must be "):
            CALLS[field]()


def test_a_state_may_be_given_by_name() -> None:
    for state in Maturity:
        assert multiplier(state.value) == multiplier(state), state
        assert PatternMaturity(pattern_id="p", as_of=NOW, state=state.value).state is state, state  # type: ignore[arg-type]
