"""Schema checks of tasks, attempts, reflections, debug sessions and metrics; see docs/file-formats.md#schemas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from core.records.findings import Finding
from core.sources import schema
from core.sources.debug_sessions import is_debug_memory, session_records
from core.sources.episodes import ATTEMPT, METADATA, OUTCOME, TRAJECTORY, episode_file
from core.sources.key_style import is_camel, respell, snake_keys
from core.sources.reflections import EPISODIC, reflection_shape
from core.sources.schema import Rule
from core.sources.validation import check
from core.storage.decoded import Line

_EPISODES: Final[Mapping[str, Rule]] = {
    METADATA: schema.TASK,
    TRAJECTORY: schema.TRAJECTORY,
    ATTEMPT: schema.ATTEMPT,
    OUTCOME: schema.OUTCOME,
}
_ID_MESSAGE: Final = "session_id is missing"


def check_records(file: str, value: Any, known: tuple[Finding, ...] = ()) -> tuple[Finding, ...]:
    """What the schemas do not allow in a decoded document, its keys in snake_case.

    Args:
        file: Project-relative name; it names the kind of records.
        value: The document; for `.jsonl` its `Line`s.
        known: What the reader found; no place is reported twice.
    """
    texts = file.endswith((".yaml", ".yml"))
    places = {finding.pointer for finding in known}
    return tuple(
        finding
        for pointer, record, rule in _records(file, value)
        for finding in check(record, rule, file, pointer, texts=texts)
        if finding.pointer not in places and finding.message != _ID_MESSAGE
    )


def check_metrics(file: str, value: Any) -> tuple[Finding, ...]:
    """What the schema does not allow in a file of effectiveness metrics."""
    return tuple(check(value, schema.METRICS_FILE, file)) if isinstance(value, dict) else ()


def normalized(value: Any) -> Any:
    """A decoded document, or the lines of one, with known keys in snake_case; the same object where they are."""
    if isinstance(value, list) and value and isinstance(value[0], Line):
        if not any(is_camel(line.value) for line in value):
            return value
        return [Line(line.number, snake_keys(line.value)) for line in value]
    return snake_keys(value) if is_camel(value) else value


def in_own_style(findings: tuple[Finding, ...], value: Any) -> tuple[Finding, ...]:
    """Findings in `normalized(value)` with the pointers that lead through `value` itself."""
    if not isinstance(value, dict | list):
        return findings
    lines = {f"line {line.number}": line.value for line in value if isinstance(line, Line)}
    return tuple(_respelled(finding, value, lines) for finding in findings)


def _respelled(finding: Finding, value: Any, lines: Mapping[str, Any]) -> Finding:
    base = finding.pointer.partition("/")[0]
    pointer = respell(finding.pointer, lines.get(base, value), base)
    return Finding(finding.file, pointer, finding.severity, finding.code, finding.message, finding.count)


def _records(file: str, value: Any) -> Iterator[tuple[str, Mapping[str, Any], Rule]]:
    """Pointer, record and schema."""
    if is_debug_memory(file):
        yield from ((pointer, item, schema.DEBUG_SESSION) for _, pointer, item in session_records(value))
    elif reflection_shape(file) == EPISODIC:
        lines = (line for line in value if isinstance(line.value, dict))
        yield from ((f"line {line.number}", line.value, schema.REFLECTION) for line in lines)
    elif isinstance(value, dict) and (rule := _EPISODES.get(episode_file(file))):
        yield "", value, rule
