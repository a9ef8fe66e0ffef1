"""Rules of the schemas in `schema_table` (docs/file-formats.md#schemas).

Readers, the check of imports and the key order of exports use them. In the table, the value of a key is a name of
`_TYPES`, allowed words (`a | b | (c)`, where `c` is accepted but not documented), an object of keys, or a list with
the rule of its items (`[loop ID, {…}]` also accepts plain strings). `!` after a key makes it required.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.records.patterns import PatternType
from core.sources.schema_table import SCHEMA_TABLE

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
        keys = {key.removesuffix("!"): replace(_rule(value), required=key.endswith("!")) for key, value in node.items()}
        return Rule("object", keys=keys)
    if isinstance(node, list):
        return Rule("array", items=replace(_rule(node[-1]), or_text=len(node) > 1))
    if " | " in node:
        words = node.split(" | ")
        tolerated = tuple(word.strip("()") for word in words if word.startswith("("))
        return Rule("string", words=tuple(word for word in words if not word.startswith("(")), tolerated=tolerated)
    return _TYPES[node]


SCHEMAS: Final = {name: _rule(node) for name, node in SCHEMA_TABLE.items()}
PATTERNS: Final[Mapping[PatternType, Rule]] = {
    kind: Rule("object", keys=SCHEMAS[kind].keys | SCHEMAS["common"].keys) for kind in PatternType
}
"""Schema of a pattern by type."""
