"""Key order and key selection of exported records, from the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.records.patterns import PatternType
<<<<<<< HEAD
from core.records.times import parse_time
from core.sources.fields import shown
from core.sources.patterns import CLAIMED_RATE

_MAX_FINDINGS: Final = 20
"""A record that is wrong all over says so this many times."""


@dataclass(frozen=True)
class Rule:
    """What one value may be.

    Attributes:
        kind: string, time, number, integer, array, object, or `texts`: an object of strings by free names.
        required: Its object is not complete without it.
        words: All that it may be; empty for anything.
        pattern: What a string has to match.
        low, high: Limits of a number.
        length: Shortest string, in characters.
        items: What an array holds.
        keys: What an object holds, in the order of (3); other keys are nobody's business.
    """

    kind: str
    required: bool = False
    words: tuple[str, ...] = ()
    pattern: str = ""
    low: float = -math.inf
    high: float = math.inf
    length: int = 0
    items: Rule | None = None
    keys: Mapping[str, Rule] = field(default_factory=dict)


def _object(required: bool = False, **keys: Rule) -> Rule:
    return Rule("object", required, keys=keys)


def _id(prefix: str) -> Rule:
    return Rule("string", True, pattern=rf"{prefix}-[a-z0-9-]+-\d{{3}}")


def _words(words: str, required: bool = True) -> Rule:
    return Rule("string", required, tuple(words.split()))


_STRING: Final = Rule("string")
_NEEDED: Final = Rule("string", True)
_TIME: Final = Rule("time")
_NUMBER: Final = Rule("number")
_COUNT: Final = Rule("integer", low=0)
_TEXTS: Final = Rule("array", items=_STRING)
_RATE: Final = Rule("number", True, low=0, high=1)
_USES: Final = Rule("integer", True, low=0)
_TREND: Final = Rule(
    "array", items=_object(timestamp=_TIME, success_rate_snapshot=_NUMBER, sample_size=Rule("integer"))
)

_OTHERS: Final = {
    "last_used": _TIME,
    "first_discovered": _TIME,
    "effectiveness_trend": _TREND,
    "successful_applications": _COUNT,
    "failed_applications": _COUNT,
    CLAIMED_RATE: Rule("number", low=0, high=1),
    "related_patterns": _TEXTS,
    "inverted_from": _STRING,
    "aliases": _TEXTS,
    "origins": Rule("object"),
}
"""What (0), (2) and ralphdeck add to records of any type; behind the keys of (3)."""

SCHEMA: Final[Mapping[PatternType, Mapping[str, Rule]]] = {
    PatternType.ERROR: {
        "pattern_id": _id("pat-error"),
        "error_signature": _object(
            True,
            error_type=_words(
                "TypeError ReferenceError AssertionError SyntaxError RuntimeError TimeoutError ValidationError Other"
            ),
            error_pattern=_NEEDED,
            error_location_hints=_TEXTS,
        ),
        "fix_approach": _object(
            True,
            description=Rule("string", True, length=20),
            fix_category=_words(
                "add_null_check add_type_validation add_error_handling fix_logic_error add_import"
                " update_dependency refactor_code_structure other"
            ),
            code_template=_STRING,
            code_template_language=_STRING,
            diff_pattern=_STRING,
        ),
        "source_loops": Rule("array", items=_object(loop_id=_STRING, timestamp=_TIME, contributed_by=_STRING)),
        "success_rate": _RATE,
        "usage_count": _USES,
        "last_used": _TIME,
        "first_discovered": _TIME,
        "effectiveness_trend": _TREND,
        "related_patterns": _TEXTS,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.SUCCESS: {
        "pattern_id": _id("pat-success"),
        "task_category": _words(
            "implementation debugging refactoring testing documentation architecture migration optimization"
        ),
        "task_description_pattern": _STRING,
        "approach": _object(
            True,
            description=_NEEDED,
            steps=Rule("array", True, items=_STRING),
            tools_used=_TEXTS,
            typical_iterations=_object(average=_NUMBER, minimum=_NUMBER, maximum=_NUMBER),
        ),
        "source_loops": Rule(
            "array",
            items=_object(
                loop_id=_STRING,
                outcome=_words("success partial failure", required=False),
                iterations_required=Rule("integer"),
                timestamp=_TIME,
            ),
        ),
        "success_rate": _RATE,
        "usage_count": _USES,
        "average_iterations": _NUMBER,
        "preconditions": _TEXTS,
        "benefits": _TEXTS,
        "limitations": _TEXTS,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.ANTI: {
        "pattern_id": _id("pat-anti"),
        "approach_description": _NEEDED,
        "failure_mode": _words(
            "infinite_loop quality_degradation scope_creep repeated_same_error incorrect_fix breaking_change"
            " performance_regression"
        ),
        "failure_symptoms": _TEXTS,
        "why_it_fails": _STRING,
        "better_alternative": _object(description=_STRING, success_pattern_id=_STRING),
        "source_loops": Rule(
            "array", items=_object(loop_id=_STRING, failure_iteration=Rule("integer"), timestamp=_TIME)
        ),
        "failure_rate": _RATE,
        "occurrence_count": _USES,
        "tags": _TEXTS,
        **_OTHERS,
    },
    PatternType.TEMPLATE: {
        "template_id": _id("tmpl"),
        "language": _words("typescript javascript python go rust java other"),
        "template_code": _NEEDED,
        "description": _STRING,
        "placeholders": Rule("texts"),
        "use_case": _STRING,
        "source_loops": _TEXTS,
        "usage_count": Rule("integer", True),
        "success_rate": _NUMBER,
        "tags": _TEXTS,
        **_OTHERS,
    },
}
=======
from core.sources.schema import PATTERNS, Rule
>>>>>>> 2cf0af7 (Check records against their schemas and read more file shapes)

DIALECT_KEYS: Final = frozenset(
    {
        *("name", "title", "type", "description", "error_type", "error_pattern", "fix_template"),
        *("occurrences", "last_seen"),
    }
)
"""Keys beside those of the schema that other writers use and the reader takes."""


def ordered(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """The record with the keys of its schema first, in their order, and other keys sorted by name behind them.

    Placeholders keep their order: it is part of the text that somebody has read and decided on.
    """
    return _ordered(record, PATTERNS[kind].keys)


def known_only(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """The record without keys that are neither in its schema nor read as a dialect."""
    return _known(record, {**PATTERNS[kind].keys, **dict.fromkeys(DIALECT_KEYS, Rule("string"))})


def _ordered(record: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, Any]:
    names = [name for name in rules if name in record]
    names += sorted(name for name in record if name not in rules)
    return {name: _ordered_value(record[name], rules.get(name)) for name in names}


def _ordered_value(value: Any, rule: Rule | None) -> Any:
    if isinstance(value, dict):
        return value if rule and rule.kind == "texts" else _ordered(value, rule.keys if rule else {})
    if isinstance(value, list):
        return [_ordered_value(item, rule.items if rule else None) for item in value]
    return value


def _known(record: Mapping[str, Any], rules: Mapping[str, Rule]) -> dict[str, Any]:
    return {name: _known_value(value, rules[name]) for name, value in record.items() if name in rules}


def _known_value(value: Any, rule: Rule) -> Any:
    if isinstance(value, dict) and rule.keys:
        return _known(value, rule.keys)
    if isinstance(value, list) and rule.items is not None:
        return [_known_value(item, rule.items) for item in value]
    return value
