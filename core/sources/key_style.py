"""Read and edit records with camelCase keys as if the keys were in snake_case.

Only known keys are renamed, and only in objects with fixed keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from core.base.text import to_camel
from core.sources.fields import escape_key
from core.sources.schema import SCHEMAS, Rule
from core.storage.file_reader import Line
from core.storage.json_editor import JsonText, Path

if TYPE_CHECKING:
    from core.records.findings import Finding

_FREE: Final = frozenset({"placeholders", "origins", "additional", "params"})
"""Fields with objects whose keys are data and are never renamed."""
_OTHER_KEYS: Final = (
    *("pattern_registry", "error_patterns", "success_patterns", "anti_patterns", "code_templates"),
    *("template_patterns", "error_type", "error_pattern", "fix_template", "last_seen", "is_negative", "anti_pattern"),
    *("source_loop", "success_count", "failure_count"),
)
"""Known keys that are not in a schema."""


def _keys_of(rule: Rule) -> Iterator[str]:
    for name, inner in rule.keys.items():
        yield name
        yield from _keys_of(inner)
    if rule.items is not None:
        yield from _keys_of(rule.items)


_KNOWN: Final = {*_OTHER_KEYS, *(name for rule in SCHEMAS.values() for name in _keys_of(rule))}
SNAKE: Final[Mapping[str, str]] = {to_camel(name): name for name in sorted(_KNOWN) if to_camel(name) != name}
"""The snake_case form of each known key with several words, by its camelCase form."""
_CAMEL: Final = frozenset(SNAKE)
_NESTED: Final = (dict, list)
_NESTED_TYPES: Final = frozenset(_NESTED)


def is_camel(value: Any) -> bool:
    """Whether a value contains known keys in camelCase at any depth."""
    if isinstance(value, dict):
        if not _CAMEL.isdisjoint(value):
            return True
        for key, item in value.items():
            if isinstance(item, _NESTED) and key not in _FREE and is_camel(item):
                return True
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, _NESTED) and is_camel(item):
                return True
    return False


def snake_keys(value: Any) -> Any:
    """Convert known keys to snake_case, unless the object has both spellings."""
    if isinstance(value, dict):
        own = snake_own_keys(value)
        if not _has_nested(value):
            return own
        return {
            key: snake_keys(item) if isinstance(item, _NESTED) and old not in _FREE else item
            for old, (key, item) in zip(value, own.items(), strict=True)
        }
    return [snake_keys(item) for item in value] if isinstance(value, list) else value


def _has_nested(value: Mapping[str, Any]) -> bool:
    return not _NESTED_TYPES.isdisjoint(map(type, value.values()))


def snake_own_keys(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Like `snake_keys`, but leaves nested objects unchanged."""
    if _CAMEL.isdisjoint(value):
        return value
    return {SNAKE[key] if key in SNAKE and SNAKE[key] not in value else key: item for key, item in value.items()}


def camel_keys(value: Any) -> Any:
    """Convert known keys to camelCase, unless the object has both spellings."""
    if isinstance(value, dict):
        return {
            name if (name := to_camel(key)) in SNAKE and name not in value else key: (
                item if key in _FREE else camel_keys(item)
            )
            for key, item in value.items()
        }
    return [camel_keys(item) for item in value] if isinstance(value, list) else value


def respell(pointer: str, value: Any, base: str = "") -> str:
    """Translate a JSON pointer into `snake_keys(value)` to the keys of `value`."""
    if not pointer.startswith(base):
        return pointer
    parts = []
    for part in pointer[len(base) :].split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            name = to_camel(name) if name not in value and to_camel(name) in value else name
            value = value.get(name)
        elif isinstance(value, list) and name.isdecimal() and int(name) < len(value):
            value = value[int(name)]
        parts.append(escape_key(name))
    return "".join((base, *(f"/{part}" for part in parts)))


def normalize_keys(value: Any) -> Any:
    """Convert the known keys of a document, or of its `Line`s, to snake_case."""
    if isinstance(value, list) and value and isinstance(value[0], Line):
        if not any(is_camel(line.value) for line in value):
            return value
        return [Line(line.number, snake_keys(line.value)) for line in value]
    return snake_keys(value) if is_camel(value) else value


def restore_key_style(findings: tuple[Finding, ...], value: Any) -> tuple[Finding, ...]:
    """Translate pointers into `normalize_keys(value)` to pointers into `value`."""
    several = value if isinstance(value, list) else ()
    lines = {f"line {line.number}": line.value for line in several if isinstance(line, Line)}
    bases = (finding.pointer.partition("/")[0] for finding in findings)
    return tuple(
        replace(finding, pointer=respell(finding.pointer, lines.get(base, value), base))
        for finding, base in zip(findings, bases, strict=True)
    )


class RecordText(JsonText):
    """An editable JSON document; `value` and paths have snake_case keys.

    Text written to the file has the key style of the file.
    """

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self._is_camel = is_camel(self.value)
        if self._is_camel:
            self.value = snake_keys(self.value)

    def _find(self, path: Path) -> int:
        if not self._is_camel:
            return super()._find(path)
        steps = list(path)
        start = self._line_start(int(steps.pop(0)) if self.is_lines else 0)
        for step in steps:
            start = self._child_of(start, self._spelling(start, step)).value
        return start

    def _spelling(self, start: int, key: str | int) -> str | int:
        if not self._is_camel or isinstance(key, int):
            return key
        names = {child.key for child in self._children(start)}
        return to_camel(key) if key not in names and to_camel(key) in SNAKE else key

    def _written(self, value: Any) -> Any:
        return camel_keys(value) if self._is_camel else value

    def _parsed(self, value: Any) -> Any:
        return snake_keys(value) if self._is_camel else value

    def _part(self, data: bytes) -> JsonText:
        part = RecordText(data)
        part._is_camel = self._is_camel
        return part
