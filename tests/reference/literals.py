"""Literal parts of regular expressions: texts without them cannot match."""

from __future__ import annotations

import math
import re._constants as kinds  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Iterable
from typing import Any, Final

Group = frozenset[str]  # any text that matches contains at least one of them, in lower case

_SHORTEST: Final = 3  # bytes of a literal part; shorter ones are in most texts
_RARE: Final = frozenset("@|<>$=&;`*#%")  # signs that are rare enough to be parts alone
_MOST_JOINED: Final = 4  # texts that two parts in a row make together; more parts take longer to compile
_MOST_CHOICES: Final = 64
_MOST_ALTERNATIVES: Final = 12
_REPEATS: Final = (kinds.MAX_REPEAT, kinds.MIN_REPEAT)


def find_literals(pattern: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """Find groups of texts for each alternative of a pattern; () if one can match without any.

    What matches the alternative contains, in any case, at least one text of each group. Rare groups are first.
    """
    tree = list(parser.parse(pattern))
    whole, parts = [_groups(tree)], [_groups(alternative) for alternative in _alternatives(tree)]
    chosen = min(whole, parts, key=lambda found: sum(map(_frequency, found)))
    return tuple(sorted(set(chosen))) if all(chosen) else ()


def _alternatives(items: Iterable[Any]) -> list[list[Any]]:
    """Split an expression at its outermost `|`."""
    nodes = list(items)
    for place, (kind, value) in enumerate(nodes):
        if kind is kinds.BRANCH and len(value[1]) <= _MOST_ALTERNATIVES:
            return [[*nodes[:place], *branch, *nodes[place + 1 :]] for branch in value[1]]
        if kind is not kinds.AT:
            break
    return [nodes]


def _groups(items: Iterable[Any]) -> tuple[tuple[str, ...], ...]:
    texts, groups = _of_sequence(items)
    found = {tuple(sorted(_without_longer(group))) for group in (*groups, *_usable(texts))}
    return tuple(sorted(found, key=lambda group: (_group_frequency(group), group)))


def _frequency(groups: tuple[tuple[str, ...], ...]) -> float:
    """Estimate how often a text contains a text of each group; only for comparisons."""
    return math.prod(min(_group_frequency(group), 1.0) for group in groups)


def _group_frequency(group: tuple[str, ...]) -> float:
    return sum(3.0 * 3.0 ** -len(text) for text in group)


def _of_sequence(items: Iterable[Any]) -> tuple[Group | None, list[Group]]:
    """Return all texts that match, if they are few, and groups of which each match contains a text."""
    found: list[Group] = []
    joined, is_whole = frozenset({""}), True
    for kind, value in items:
        texts, groups = _of_node(kind, value)
        found += groups
        if texts is not None and len(joined) * len(texts) <= _MOST_JOINED:
            joined = frozenset(start + end for start in joined for end in texts)
            continue
        if texts is None or joined != {""}:
            is_whole = False
        found += _usable(joined)
        joined = frozenset({""}) if texts is None else texts
    if is_whole:
        return joined, found
    return None, [*found, *_usable(joined)]


def _of_node(kind: Any, value: Any) -> tuple[Group | None, list[Group]]:
    """Do the same for one node of the syntax tree."""
    if kind is kinds.LITERAL:
        return frozenset({_lower(value)}), []
    if kind is kinds.AT:
        return frozenset({""}), []
    if kind is kinds.IN:
        return _of_class(value), []
    if kind is kinds.SUBPATTERN:
        return _of_sequence(value[-1])
    if kind is kinds.BRANCH:
        return _of_branches([_of_sequence(branch) for branch in value[1]])
    if kind not in _REPEATS or value[1] == 0:
        return None, []
    least, most, repeated = value
    texts, groups = _of_sequence(repeated)
    if least:
        return (texts, groups) if most == 1 else (None, [*groups, *_usable(texts)])
    return (texts | {""} if most == 1 and texts is not None else None), []


def _of_branches(branches: list[tuple[Group | None, list[Group]]]) -> tuple[Group | None, list[Group]]:
    choices = [texts for texts, _ in branches if texts is not None]
    together: Group = frozenset().union(*choices)
    if len(choices) == len(branches) and len(together) <= _MOST_CHOICES:
        return together, []
    best = [max([*groups, *_usable(texts)], key=_shortest, default=None) for texts, groups in branches]
    return None, [frozenset().union(*(group for group in best if group))] if all(best) else []


def _of_class(members: Any) -> Group | None:
    if any(kind is not kinds.LITERAL for kind, _ in members):
        return None
    found = frozenset(_lower(value) for _, value in members)
    return found if len(found) <= _MOST_JOINED else None


def _lower(code: int) -> str:
    return chr(code).lower() if code < 0x80 else chr(code)


def _usable(texts: Group | None) -> list[Group]:
    return (
        [texts]
        if texts and all(len(text.encode()) >= _SHORTEST or not _RARE.isdisjoint(text) for text in texts)
        else []
    )


def _shortest(texts: Group) -> int:
    return min(len(text.encode()) for text in texts)


def _without_longer(texts: Group) -> Group:
    """Remove texts that contain another one."""
    return frozenset(text for text in texts if not any(other != text and other in text for other in texts))
