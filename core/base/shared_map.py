"""Immutable mappings that share what did not change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeVar, cast, overload

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_Default = TypeVar("_Default")
_FEW: Final = 1000  # changes that are always kept apart
_SHARE: Final = 16  # more changes than one in this number of entries are merged into a new dict
_ABSENT: Final = object()


class _Changed(Mapping[_Key, _Value]):
    """A mapping that is never changed itself, and some entries that replace or follow its own."""

    __slots__ = ("_added", "base", "changes")

    def __init__(self, base: Mapping[_Key, _Value], changes: dict[_Key, _Value]) -> None:
        self.base = base
        self.changes = changes
        self._added = [key for key in changes if key not in base]

    def __getitem__(self, key: _Key) -> _Value:
        found = self.changes.get(key, _ABSENT)
        return self.base[key] if found is _ABSENT else cast(_Value, found)

    @overload
    def get(self, key: _Key, /) -> _Value | None: ...
    @overload
    def get(self, key: _Key, /, default: _Value | _Default) -> _Value | _Default: ...
    def get(self, key: _Key, /, default: object = None) -> object:
        found = self.changes.get(key, _ABSENT)
        return self.base.get(key, default) if found is _ABSENT else found

    def __contains__(self, key: object) -> bool:
        return key in self.changes or key in self.base

    def __iter__(self) -> Iterator[_Key]:
        yield from self.base
        yield from self._added

    def __len__(self) -> int:
        return len(self.base) + len(self._added)


def with_changes(mapping: Mapping[_Key, _Value], changes: Mapping[_Key, _Value]) -> Mapping[_Key, _Value]:
    """Return a mapping with some entries replaced or added; entries keep their order.

    The cost depends on the number of changes, not of entries, except once in many calls. `mapping` must never change.
    """
    if not changes:
        return mapping
    if isinstance(mapping, _Changed):
        base, later = mapping.base, {**mapping.changes, **changes}
    else:
        base, later = mapping, dict(changes)
    if len(later) > _FEW and len(later) > len(base) // _SHARE:  # the length of some mappings takes long
        return {**base, **later}
    return _Changed(base, later)
