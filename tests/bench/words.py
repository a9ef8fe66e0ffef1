"""Random texts whose words are distributed as in natural language: few are frequent, most are rare (Zipf's law)."""

from __future__ import annotations

import random
from itertools import accumulate, product
from typing import Final

_FREQUENT: Final = [
    "auth", "token", "session", "cart", "order", "invoice", "payment", "refund", "webhook", "migration",
    "index", "query", "cache", "pool", "retry", "timeout", "null", "undefined", "type", "interface",
    "schema", "parse", "serialise", "queue", "worker", "job", "report", "export", "import", "search",
    "product", "price", "stock", "delivery", "address", "mail", "template", "route", "handler",
    "middleware", "limit", "lock", "deadlock", "transaction", "rollback", "commit", "batch", "cursor",
    "page", "filter", "sort", "key", "constraint", "column", "table", "view", "trigger",
]  # fmt: skip
_SYLLABLES: Final = [one + other for one, other in product("bdfgklmnprstvz", "aeiou")]
_RARE: Final = ["".join(parts) for parts in product(_SYLLABLES, _SYLLABLES)]  # 4,900 invented words


def _vocabulary() -> list[str]:
    random.Random(0).shuffle(_RARE)
    return _FREQUENT + _RARE


_WORDS: Final = _vocabulary()
_WEIGHTS: Final = list(accumulate(1 / rank for rank in range(1, len(_WORDS) + 1)))


def words(source: random.Random, count: int) -> list[str]:
    """`count` random words; about half of them are among the 57 frequent ones."""
    return source.choices(_WORDS, cum_weights=_WEIGHTS, k=count)


def text(source: random.Random, count: int) -> str:
    """`count` random words, as in errors and reflections."""
    return " ".join(words(source, count))
