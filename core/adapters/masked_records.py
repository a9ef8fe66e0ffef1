"""Records of adapters without secrets (docs/safety.md#masks) and without injected contexts, made once for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from core.base.context_blocks import remove_contexts
from core.redaction.masking import mask_secrets

if TYPE_CHECKING:
    from core.records.lessons import Lesson
    from core.records.loops import Loop

_NAMES: Final = frozenset({"id", "loop_id", "runner", "sources", "session_ids", "aliases", "parent", "badges", "owner"})
"""Fields that contain identifiers, by which records are found."""

_Record = TypeVar("_Record", bound=Struct)


def mask_texts(record: _Record) -> _Record:
    """Return a record with secrets masked in all texts; the same object if there are none."""
    changed = {}
    for name in record.__struct_fields__:
        if name not in _NAMES:
            value = getattr(record, name)
            if value and (masked := _mask(value)) is not value:
                changed[name] = masked
    return replace(record, **changed) if changed else record


def _mask(value: Any) -> Any:
    kind = type(value)
    if kind is str:
        masked = mask_secrets(value)
        return value if masked == value else masked
    if kind is tuple:
        found = tuple(map(_mask, value))
        return value if all(one is other for one, other in zip(found, value, strict=True)) else found
    return mask_texts(value) if isinstance(value, Struct) else value


class MaskedRecords:
    """Masked records, each made once for an unchanged record of an adapter."""

    def __init__(self) -> None:
        self._loops: dict[str, tuple[Loop, Loop]] = {}
        self._lessons: dict[str, tuple[Lesson, Lesson]] = {}

    def loop(self, loop: Loop) -> Loop:
        """Return the masked loop; its task has no contexts that a person or runner added to the prompt."""
        return _masked_once(self._loops, loop.id, loop, "task")

    def lesson(self, lesson: Lesson) -> Lesson:
        """Return the masked lesson; its text is "" if it is only a context that was delivered as one."""
        return _masked_once(self._lessons, lesson.id, lesson, "text")


def _masked_once(known: dict[str, tuple[_Record, _Record]], id: str, record: _Record, field: str) -> _Record:
    if id in known:
        before, masked = known[id]
        if before is record or before == record:
            return masked
    masked = mask_texts(record)
    text = getattr(masked, field)
    if (own := remove_contexts(text)) != text:
        masked = replace(masked, **{field: own})
    known[id] = record, masked
    return masked
