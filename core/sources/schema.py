"""Schemas of records on disk, and checks; docs/file-formats.md#schemas.

Readers, the check of imports and the key order of exports use them. In the table, the value of one or several keys is a
name of `_TYPES`, allowed words (`a | b | (c)`, where `c` is accepted but not documented), an object of keys, or a list
with the rule of its items (`[loop ID, {…}]` also accepts plain strings). `!` after a key makes it required. It is not a
YAML file, whose parser would take 15 ms in each command.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Final, Literal, Union

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.records.findings import MISSING, NOT_IN_SCHEMA, Finding, Severity
from core.records.patterns import PatternType
from core.records.times import parse_time
from core.sources import normalize
from core.sources.normalize import escape_key, quote_value

_TREND: Final[Any] = [{"timestamp": "time", "success_rate_snapshot": "number", "sample_size": "integer"}]
# Of pattern sharing, in a file of their own or in a registry file.
_METRICS: Final[Any] = {
    "total_patterns": "integer",
    "patterns_by_type": {"error_patterns, success_patterns, anti_patterns, code_templates": "integer"},
    "pattern_usage_stats": {
        "total_applications, successful_applications, failed_applications": "integer",
        "overall_success_rate": "plain rate",
    },
    "cross_loop_benefit": {
        "loops_with_pattern_injection, loops_without_pattern_injection": "integer",
        "average_iterations_with, average_iterations_without, improvement_percentage": "number",
    },
    "last_updated": "time",
}
# outcome.json of an attempt, or `outcome` in its attempt.json
_OUTCOME: Final[Any] = {
    "status": "success | failure | timeout | (partial)",
    "reason": "string",
    "final_quality, completion_percent": "number",
    "what_worked, what_didnt_work, suggestions_for_next_time": ["string"],
}
_MILESTONES: Final[Any] = [{"timestamp": "time", "event": "string", "details": "string"}]
_TABLE: Final[dict[str, dict[str, Any]]] = {
    # Keys that patterns of any type may have, after the keys of their own schema.
    "common": {
        "last_used, first_discovered": "time",
        "effectiveness_trend": _TREND,
        "successful_applications, failed_applications": "count",
        "claimed_rate": "rate",
        "related_patterns": ["string"],
        "inverted_from": "string",
        "aliases, anchors": ["string"],
        "anchor_commit": "string",
        "origins": "object",
    },
    "error": {
        "pattern_id!": "error pattern ID",
        "error_signature!": {
            "error_type!": (
                "TypeError | ReferenceError | AssertionError | SyntaxError | RuntimeError | TimeoutError"
                " | ValidationError | Other | (NetworkError)"
            ),
            "error_pattern!, error_message": "string",
            "error_places, error_location_hints": ["string"],
        },
        "fix_approach!": {
            "description!": "sentence",
            "fix_category!": (
                "add_null_check | add_type_validation | add_error_handling | fix_logic_error | add_import"
                " | update_dependency | refactor_code_structure | other"
            ),
            "code_template, code_template_language, diff_pattern": "string",
        },
        "source_loops": ["loop ID", {"loop_id": "string", "timestamp": "time", "contributed_by": "string"}],
        "success_rate!": "rate",
        "usage_count!": "count",
        "last_used, first_discovered": "time",
        "effectiveness_trend": _TREND,
        "related_patterns, tags": ["string"],
    },
    "success": {
        "pattern_id!": "success pattern ID",
        "task_category!": (
            "implementation | debugging | refactoring | testing | documentation | architecture | migration"
            " | optimization"
        ),
        "task_description_pattern": "string",
        "approach!": {
            "description!": "string",
            "steps!, tools_used": ["string"],
            "typical_iterations": {"average, minimum, maximum": "number"},
        },
        "source_loops": [
            "loop ID",
            {
                "loop_id": "string",
                "timestamp": "time",
                "outcome": "success | partial | failure",
                "iterations_required": "integer",
            },
        ],
        "success_rate!": "rate",
        "usage_count!": "count",
        "average_iterations": "number",
        "preconditions, benefits, limitations, tags": ["string"],
    },
    "anti": {
        "pattern_id!": "anti-pattern ID",
        "approach_description!": "string",
        "failure_mode!": (
            "infinite_loop | quality_degradation | scope_creep | repeated_same_error | incorrect_fix"
            " | breaking_change | performance_regression"
        ),
        "failure_symptoms": ["string"],
        "why_it_fails": "string",
        "better_alternative": {"description": "string", "success_pattern_id": "string"},
        "source_loops": ["loop ID", {"loop_id": "string", "timestamp": "time", "failure_iteration": "integer"}],
        "failure_rate!": "rate",
        "occurrence_count!": "count",
        "tags": ["string"],
    },
    "template": {
        "template_id!": "template ID",
        "language!": "typescript | javascript | python | go | rust | java | other",
        "template_code!, description": "string",
        "placeholders": "strings by name",
        "use_case": "string",
        "source_loops": ["string"],
        "usage_count!": "integer",
        "success_rate": "plain rate",
        "tags": ["string"],
    },
    "metrics": _METRICS,
    "metrics_file": _METRICS | {"effectiveness_metrics": _METRICS},
    # Without its patterns.
    "registry": {
        "version": "version",
        "effectiveness_metrics": _METRICS,
        "pruning_policy": {
            "min_success_rate": "plain rate",
            "min_usage_count": "number",
            "max_age_days": "integer",
            "archive_instead_of_delete": "boolean",
            "archive_path": "string",
            "auto_prune": "boolean",
            "prune_interval_days": "integer",
        },
    },
    # metadata.json
    "task": {
        "id, description, completion_criteria": "string",
        "created, updated, completed": "time",
        "status": "running | paused | completed | failed",
        "current_attempt, total_attempts": "integer",
        "tags, related_tasks": ["string"],
    },
    # trajectory.json of a task
    "trajectory": {
        "task_id": "string",
        "attempts": [
            {
                "attempt_id": "integer",
                "started, ended": "time",
                "outcome": "success | failure | timeout | (partial)",
                "plan": "string",
                "actions, iterations": "integer",
                "milestones": _MILESTONES,
                "final_quality, completion_percent": "number",
            }
        ],
        "milestones": _MILESTONES,
    },
    "outcome": _OUTCOME,
    # attempt.json
    "attempt": {
        "id": "integer",
        "task_id": "string",
        "started, ended": "time",
        "plan": {"approach": "string", "steps": ["string"], "estimated_iterations": "integer"},
        "execution": {
            "agent": "string",
            "iterations, actions_performed": "integer",
            "quality_history": [{"iteration": "integer", "quality": "number", "delta": "number"}],
        },
        "outcome": _OUTCOME,
        "what_worked, what_didnt_work, suggestions_for_next_time": ["string"],
    },
    # one line of reflections.jsonl of a task
    "reflection": {
        "timestamp": "time",
        "attempt_id": "integer",
        "observation, analysis, learning": "string",
        "action_items": ["string"],
        "triggered_by": "failure | success | timeout | manual",
        "reflection_type": "error-analysis | success-pattern | process-improvement",
    },
    "debug_session": {
        "session_id!": "UUID",
        "file_path!": "string",
        "created_at, updated_at": "time",
        "status": "in_progress | passed | failed | escalated",
        "executions!": [
            {
                "attempt!": "positive integer",
                "timestamp!": "time",
                "code_hash!, code_snapshot": "string",
                "environment": {"runtime, runtime_version, test_framework, os": "string", "additional": "object"},
                "test_results!": {
                    "total!, passed!, failed!, errors, skipped, duration_ms": "count",
                    "coverage_percent": "percent",
                },
                "failures": [
                    {
                        "test_name!, test_file": "string",
                        "test_line": "integer",
                        "error_type!": (
                            "AssertionError | TypeError | ReferenceError | SyntaxError | RuntimeError | TimeoutError"
                            " | NetworkError | ValidationError | Other"
                        ),
                        "exception_type, error_message!, stack_trace, expected, actual": "string",
                        "source_location": {"file": "string", "line": "integer", "function": "string"},
                    }
                ],
                "analysis": {
                    "root_cause!": "sentence",
                    "root_cause_category": (
                        "null_undefined_access | type_mismatch | missing_validation | logic_error | off_by_one"
                        " | race_condition | resource_leak | missing_error_handling | api_misuse"
                        " | configuration_error | dependency_issue | other"
                    ),
                    "fix_strategy!": "sentence",
                    "confidence": "rate",
                    "related_failures": ["string"],
                    "similar_past_issues": [{"session_id, file, resolution": "string"}],
                },
                "fix_applied": {
                    "description!, diff_summary": "string",
                    "files_changed": ["string"],
                    "diff": "string",
                    "verification": "pending | passed | failed",
                },
            }
        ],
        "learnings": {
            "patterns_identified": [
                {
                    "pattern!, category": "string",
                    "frequency!": "positive integer",
                    "fix_template": "string",
                    "effectiveness": "rate",
                }
            ],
            "recurring_failures": [
                {
                    "test": "string",
                    "occurrences": "integer",
                    "resolution": "resolved | pending | wont_fix | escalated",
                    "notes": "string",
                }
            ],
            "code_quality_issues": [
                {"issue, location": "string", "severity": "critical | major | minor", "addressed": "boolean"}
            ],
            "recommendations": ["string"],
        },
        "metadata": {"agent, task_id, loop_id": "string", "attempt, ralph_iteration": "integer"},
    },
}


MAX_USES: Final = 10**9  # Maximum plausible count of uses; a larger one is ignored.
CLAIMED_RATE: Final = "claimed_rate"
"""Key of a claimed rate after recorded results replaced it (docs/scoring.md#claimed-rates)."""


class Rule(Struct, frozen=True, eq=False):
    """Allowed values of one field.

    `kind` is string, time, number, integer, boolean, array, object, or `texts` (an object of strings with any keys).
    """

    kind: str
    required: bool = False
    words: tuple[str, ...] = ()
    """Allowed words, empty to allow any; `tolerated` words are accepted, but not documented."""
    tolerated: tuple[str, ...] = ()
    pattern: str = ""  # A regular expression for the whole string; if `advisory`, a mismatch is only information.
    advisory: bool = False
    low: float = -math.inf
    high: float = math.inf
    rate: bool = False  # Whether it is a rate from 0 to 1, which some programs write as a percentage.
    length: int = 0  # Minimum length of a string, in characters.
    or_text: bool = False  # Whether a plain string is accepted instead of an object.
    items: Rule | None = None
    keys: dict[str, Rule] = {}  # Rules for the keys of an object, in documented order; other keys are not checked.


_TYPES: Final = {
    **{name: Rule(name) for name in ("string", "time", "number", "integer", "boolean", "object")},
    "count": Rule("integer", low=0),
    "positive integer": Rule("integer", low=1),
    "rate": Rule("number", low=0, high=1, rate=True),
    "plain rate": Rule("number", rate=True),
    "percent": Rule("number", low=0, high=100),
    "sentence": Rule("string", length=20),
    "strings by name": Rule("texts"),
    "version": Rule("string", pattern=r"\d+\.\d+\.\d+"),
    # Advisory, because the documented example, `dm-001-example`, is not a UUID.
    "UUID": Rule("string", pattern=r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", advisory=True),
    **{
        f"{name} ID": Rule("string", pattern=rf"{prefix}-[a-z0-9-]+-\d{{3}}")
        for name, prefix in {
            "error pattern": "pat-error",
            "success pattern": "pat-success",
            "anti-pattern": "pat-anti",
            "template": "tmpl",
        }.items()
    },
}


def _rule(node: Any) -> Rule:
    if isinstance(node, dict):
        named = ((name, _rule(value)) for names, value in node.items() for name in names.split(", "))
        return Rule(
            "object", keys={name.removesuffix("!"): replace(rule, required=name.endswith("!")) for name, rule in named}
        )
    if isinstance(node, list):
        return Rule("array", items=replace(_rule(node[-1]), or_text=len(node) > 1))
    if " | " in node:
        words = node.split(" | ")
        tolerated = tuple(word.strip("()") for word in words if word.startswith("("))
        return Rule("string", words=tuple(word for word in words if not word.startswith("(")), tolerated=tolerated)
    return _TYPES[node]


SCHEMAS: Final = {name: _rule(node) for name, node in _TABLE.items()}
PATTERNS: Final[Mapping[PatternType, Rule]] = {
    kind: Rule("object", keys=SCHEMAS[kind].keys | SCHEMAS["common"].keys) for kind in PatternType
}
"""Schema of a pattern by type."""


_MAX_FINDINGS: Final = 20  # Maximum violations that are reported for one record.
_KINDS: Final[Mapping[str, tuple[type | tuple[type, ...], str]]] = {
    "string": (str, "a string"),
    "time": (str, "an ISO-8601 time"),
    "number": ((int, float), "a number"),
    "integer": (int, "a whole number"),
    "boolean": (bool, "true or false"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
    "texts": (dict, "an object of strings"),
}
"""For each `Rule.kind`, the Python types of its values and its name in messages."""


def check(value: Mapping[str, Any], rule: Rule, file: str, pointer: str = "", *, texts: bool = False) -> list[Finding]:
    """Find schema violations in the record at `pointer`, without rejecting it.

    With `texts`, numbers and booleans may be strings, as the YAML decoder returns them.
    """
    try:
        msgspec.convert(value, compile_rule(rule), strict=not texts)
    except (msgspec.ValidationError, RecursionError):
        found = islice(_object(value, rule, pointer, texts), _MAX_FINDINGS)
        return [Finding(file, place, severity, code, message) for place, code, severity, message in found]
    return []


@functools.cache
def compile_rule(rule: Rule) -> Any:
    """Return a type that rejects every record in which `_object` finds violations."""
    if rule.kind == "object":
        if not rule.keys:
            return dict[str, Any]
        fields = [
            (name, compile_rule(inner)) if inner.required else (name, Union[compile_rule(inner), None], None)  # noqa: UP007
            for name, inner in sorted(rule.keys.items(), key=lambda item: not item[1].required)
        ]
        struct = msgspec.defstruct("Record", fields, gc=False)
        return Union[struct, str] if rule.or_text else struct  # noqa: UP007
    if rule.kind == "array":
        return list[Any] if rule.items is None else list[compile_rule(rule.items)]  # type: ignore[misc]
    if rule.kind == "string" and rule.words:
        return Literal[(*rule.words, *rule.tolerated)]
    if rule.kind == "string":
        pattern = rf"\A(?:{rule.pattern})\Z" if rule.pattern else None
        return Annotated[str, Meta(pattern=pattern, min_length=rule.length or None)]
    if rule.kind in ("number", "integer"):
        low, high = (None if math.isinf(limit) else int(limit) for limit in (rule.low, rule.high))
        number: type = float if rule.kind == "number" else int
        return Annotated[number, Meta(ge=low, le=high)]
    return {"time": datetime, "boolean": bool, "texts": dict[str, str]}[rule.kind]


_Violation = tuple[str, str, Severity, str]  # JSON pointer, code, severity and message.


def _object(record: Mapping[str, Any], rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    for name, inner in rule.keys.items():
        value = record.get(name)
        if value is not None:
            yield from _value(value, inner, f"{pointer}/{escape_key(name)}", texts)
        elif inner.required:
            yield pointer, MISSING, Severity.WARNING, f"{name} is missing"


def _value(value: Any, rule: Rule, pointer: str, texts: bool) -> Iterator[_Violation]:
    if texts and isinstance(value, str):
        value = _convert_text(value, rule.kind)
    if isinstance(value, list) and rule.kind == "array" and rule.items is not None:
        for index, item in enumerate(value):
            if item is not None:
                yield from _value(item, rule.items, f"{pointer}/{index}", texts)
            else:
                yield f"{pointer}/{index}", NOT_IN_SCHEMA, Severity.WARNING, "is null"
    elif isinstance(value, dict) and rule.kind == "texts":
        for name, item in value.items():
            if not isinstance(item, str):
                message = f"expected a string, found {quote_value(item)}"
                yield f"{pointer}/{escape_key(str(name))}", NOT_IN_SCHEMA, Severity.WARNING, message
    elif isinstance(value, dict) and rule.kind == "object":
        yield from _object(value, rule, pointer, texts)
    elif not (rule.or_text and isinstance(value, str)):
        for severity, message in _scalar(value, rule):
            yield pointer, NOT_IN_SCHEMA, severity, message


def _scalar(value: Any, rule: Rule) -> Iterator[tuple[Severity, str]]:
    """Find violations in a value that is not an expected list or object."""
    is_kind = _is_kind(value, rule.kind)
    if is_kind and isinstance(value, str):
        yield from _string(value, rule)
    elif is_kind and (isinstance(value, bool) or rule.low <= value <= rule.high):
        return
    elif not is_kind and rule.kind == "time" and parse_time(value) is not None:
        yield Severity.INFO, f"expected an ISO-8601 time, found {quote_value(value)}; accepted as a time"
    elif rule.rate and (rate := normalize.rate(value)) is not None:
        yield Severity.INFO, f"expected a number from 0 to 1, found {quote_value(value)}; read as {rate * 100:.3g} %"
    elif is_kind:
        limits = f"from {rule.low:g} to {rule.high:g}" if rule.high < math.inf else f"of at least {rule.low:g}"
        yield Severity.WARNING, f"expected a number {limits}, found {quote_value(value)}"
    else:
        yield Severity.WARNING, f"expected {_KINDS[rule.kind][1]}, found {quote_value(value)}"


def _is_kind(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    is_whole = kind == "integer" and isinstance(value, float) and value.is_integer()
    return is_whole or isinstance(value, _KINDS[kind][0])


def _convert_text(value: str, kind: str) -> Any:
    """Convert a string to the expected number or boolean, or return it unchanged."""
    found: bool | float | None = None
    if kind == "boolean":
        found = normalize.flag(value)
    elif kind in ("integer", "number"):
        found = normalize.number(value)
        found = int(found) if kind == "integer" and found is not None and found.is_integer() else found
    return value if found is None else found


def _string(value: str, rule: Rule) -> Iterator[tuple[Severity, str]]:
    if rule.kind == "time":
        if parse_time(value) is None:
            yield Severity.WARNING, f"expected an ISO-8601 time, found {quote_value(value)}"
    elif rule.words:
        if value not in rule.words and value not in rule.tolerated:
            yield Severity.WARNING, f"{quote_value(value)} is not one of {', '.join(rule.words)}"
    elif rule.pattern and not re.fullmatch(rule.pattern, value):
        severity = Severity.INFO if rule.advisory else Severity.WARNING
        yield severity, f"{quote_value(value)} does not match {rule.pattern}"
    elif len(value) < rule.length:
        yield Severity.WARNING, f"has {len(value)} characters; at least {rule.length} are expected"
