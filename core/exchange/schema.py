"""The records of (3) as data: which keys there are, in which order, and what they may hold."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from core.records.findings import Finding, Severity
from core.records.patterns import PatternType
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

DIALECT_KEYS: Final = frozenset(
    {
        *("name", "title", "type", "description", "error_type", "error_pattern", "fix_template"),
        *("occurrences", "last_seen"),
    }
)
"""What other writers put into records beside the keys of (3), and readers take (formats C1, C20, C21)."""

_CLASSES: Final = {
    "string": (str,),
    "time": (str,),
    "number": (int, float),
    "integer": (int,),
    "array": (list,),
    "object": (dict,),
    "texts": (dict,),
}


def check_record(record: Mapping[str, Any], kind: PatternType, file: str, pointer: str) -> tuple[Finding, ...]:
    """Where a record is not what (3) says; advice, since real files seldom are (formats C32)."""
    findings: list[Finding] = []
    for place, message in _keys(record, SCHEMA[kind], pointer):
        if len(findings) == _MAX_FINDINGS:
            break
        findings.append(Finding(file, place, Severity.INFO, "not-in-schema", message))
    return tuple(findings)


def ordered(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """The record with the keys of (3) first, in its order, and other keys by name behind them.

    Placeholders keep their order: it is part of the text that somebody has read and decided on.
    """
    return _ordered(record, SCHEMA[kind])


def known_only(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """The record without keys that are neither of (3) nor read by anybody."""
    return _known(record, {**SCHEMA[kind], **dict.fromkeys(DIALECT_KEYS, _STRING)})


def _keys(record: Mapping[str, Any], rules: Mapping[str, Rule], pointer: str) -> Iterator[tuple[str, str]]:
    for name, rule in rules.items():
        value = record.get(name)
        if value is not None:
            yield from _value(value, rule, f"{pointer}/{name}")
        elif rule.required:
            yield pointer, f"{name} is missing"


def _value(value: Any, rule: Rule, pointer: str) -> Iterator[tuple[str, str]]:
    whole = isinstance(value, float) and value.is_integer() and rule.kind == "integer"
    if isinstance(value, bool) or not (isinstance(value, _CLASSES[rule.kind]) or whole):
        # Templates and examples of (0) name loops by strings where (3) has objects.
        if not (rule.kind == "object" and isinstance(value, str) and "/source_loops/" in pointer):
            yield pointer, f"expected {_article(rule.kind)}, found {shown(value)}"
    elif isinstance(value, str):
        if rule.kind == "time" and parse_time(value) is None:
            yield pointer, f"expected an ISO-8601 time, found {shown(value)}"
        elif rule.words and value not in rule.words:
            yield pointer, f"{shown(value)} is none of {', '.join(rule.words)}"
        elif rule.pattern and not re.fullmatch(rule.pattern, value[:200]):
            yield pointer, f"{shown(value)} does not match {rule.pattern}"
        elif len(value) < rule.length:
            yield pointer, f"has {len(value)} characters; at least {rule.length} are expected"
    elif isinstance(value, int | float):
        if not rule.low <= value <= rule.high:
            limits = f"from {rule.low:g} to {rule.high:g}" if rule.high < math.inf else f"from {rule.low:g} up"
            yield pointer, f"expected a number {limits}, found {shown(value)}"
    elif isinstance(value, list) and rule.items is not None:
        for index, item in enumerate(value):
            yield from _value(item, rule.items, f"{pointer}/{index}")
    elif isinstance(value, dict):
        yield from _keys(value, rule.keys, pointer)


def _article(kind: str) -> str:
    return {"texts": "an object of strings", "time": "an ISO-8601 time"}.get(
        kind, f"an {kind}" if kind[0] in "aio" else f"a {kind}"
    )


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
