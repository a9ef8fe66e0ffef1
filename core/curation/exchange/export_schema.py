"""Key order and key selection of exported records, from the schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from core.records.patterns import PatternType
from core.sources.schema import PATTERNS
from core.sources.schema_rules import Rule

DIALECT_KEYS: Final = frozenset(
    {
        *("name", "title", "type", "description", "error_type", "error_pattern", "fix_template"),
        *("occurrences", "last_seen"),
    }
)
"""Keys outside the schema that other writers use and the reader supports."""


def ordered(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """Order the keys of a record: those of its schema first, then the others by name.

    Placeholders keep their order: it is part of the text that somebody has read and decided on.
    """
    return _ordered(record, PATTERNS[kind].keys)


def known_only(record: Mapping[str, Any], kind: PatternType) -> dict[str, Any]:
    """Remove the keys that are neither in the schema nor supported by the reader."""
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
