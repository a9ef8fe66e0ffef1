"""Read the documents of loops in the spelling of the agents that write most of them, many times faster than others.

The typed decoders reject a document with another key or type of value, and the tolerant readers read it instead. The
records are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from core.records.loops import ExtractedPattern, InjectedUse, Iteration, LoopStatus, Outcome
from core.records.reflections import Reflection
from core.records.times import parse_time
from core.sources import normalize
from core.sources.loop_facts import ANALYTICS, LoopFact, loop_directory, newest
from core.sources.record_kinds import HOOK, MEMORY_MANAGER, STATE, RecordKind
from core.sources.reflections import loop_of_reflection, read_headed_lines, reflection_id, text_key
from core.storage.json_reader import count_quotes, is_nested_deeper

_Text: TypeAlias = str | UnsetType | None
_Texts: TypeAlias = str | list[str] | UnsetType | None
_Flag: TypeAlias = bool | UnsetType | None
_Count: TypeAlias = Annotated[int, Meta(ge=0, le=normalize.MAX_COUNT)] | UnsetType | None
_Number: TypeAlias = Annotated[float, Meta(ge=-normalize.MAX_COUNT, le=normalize.MAX_COUNT)] | UnsetType | None
_Unread: TypeAlias = Any
_T = TypeVar("_T")


class _Strict(Struct, forbid_unknown_fields=True, gc=False):
    """An object in which every other key is an error; what is missing is `UNSET`."""


class _Iteration(_Strict):
    number: _Count = UNSET
    timestamp: _Text = UNSET
    action: _Text = UNSET
    result: _Text = UNSET
    verified: _Flag = UNSET
    learnings: _Texts = UNSET
    duration_ms: _Number = UNSET


class _Injected(_Strict):
    pattern_id: Annotated[str, Meta(min_length=1)]
    applied: _Flag = UNSET
    successful: _Flag = UNSET
    iteration_used: _Count = UNSET


class _Extracted(_Strict):
    pattern_id: Annotated[str, Meta(min_length=1)]
    new: _Flag = UNSET


class _Learning(_Strict):
    injected_patterns: list[_Injected] | None = None
    extracted_patterns: list[_Extracted] | None = None


class _State(_Strict, rename="camel"):
    status: str
    loop_id: _Text = UNSET
    active: _Unread = UNSET
    completed: _Unread = UNSET
    task: _Text = UNSET
    completion: _Texts = UNSET
    max_iterations: _Count = UNSET
    timeout_minutes: _Unread = UNSET
    timeout_ms: _Unread = UNSET
    start_time: _Text = UNSET
    start_time_ms: _Unread = UNSET
    end_time: _Text = UNSET
    current_iteration: _Count = UNSET
    current_pid: _Count = UNSET
    auto_commit: _Unread = UNSET
    branch: _Unread = UNSET
    iterations: list[_Iteration] | UnsetType | None = UNSET
    last_result: _Text = UNSET
    learnings: _Texts = UNSET
    cross_loop_learning: _Learning | UnsetType | None = msgspec.field(default=UNSET, name="cross_loop_learning")


class _Measured(_Strict):
    iteration_number: _Count = UNSET
    timestamp: _Text = UNSET
    quality_score: _Number = UNSET
    quality_delta: _Unread = UNSET
    tokens_used: _Unread = UNSET
    token_cost_usd: _Unread = UNSET
    execution_time_ms: _Unread = UNSET
    verification_status: _Unread = UNSET
    output_snapshot_path: _Unread = UNSET
    reflections: _Texts = UNSET


class _Analytics(_Strict):
    loop_id: _Text = UNSET
    task_description: _Text = UNSET
    start_time: _Text = UNSET
    end_time: _Unread = UNSET
    iterations: list[_Measured] | UnsetType | None = UNSET
    total_iterations: _Count = UNSET
    optimal_iteration: _Unread = UNSET
    final_iteration: _Unread = UNSET
    selected_iteration: _Unread = UNSET
    selection_reason: _Unread = UNSET
    total_tokens: _Unread = UNSET
    total_cost_usd: _Unread = UNSET
    total_time_ms: _Number = UNSET
    diminishing_returns_detected: _Unread = UNSET
    diminishing_returns_iteration: _Unread = UNSET
    quality_trajectory: _Unread = UNSET


class _Reflection(_Strict):
    iteration: Annotated[int, Meta(ge=0, le=normalize.MAX_COUNT)]
    content: str
    type: _Text = UNSET
    effectiveness: _Text = UNSET
    timestamp: _Text = UNSET


_MISSING: Final = (None, UNSET)
_VERIFIED: Final = {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.UNKNOWN, UNSET: Outcome.UNKNOWN}


class _Unusual(Exception):
    """A value that only the tolerant readers accept or report."""


Collections: TypeAlias = dict[str, tuple[Any, ...]]


def read_usual(file: str, kind: RecordKind, data: bytes, modified_at: datetime) -> Collections | None:
    """Return the records of a document by collection; None if it must be read tolerantly."""
    if kind.shape not in _READERS or kind.schema or kind.all_documents or not file.endswith(".json"):
        return None
    decoder, read = _READERS[kind.shape]
    try:
        document = decoder.decode(data)
        # Fewer quotation marks: a key occurs twice.
        if count_quotes(_encoder.encode(document)) < count_quotes(data) or is_nested_deeper(data):
            return None
        return read(file, kind, document, modified_at)
    except (_Unusual, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None


def _read_state(file: str, kind: RecordKind, state: _State, modified_at: datetime) -> Collections:
    loop_id, directory = _loop_of(file)
    status, inner_id = normalize.loop_status(state.status), state.loop_id or ""
    if status is LoopStatus.UNKNOWN or (state.start_time in _MISSING and state.start_time_ms not in _MISSING):
        raise _Unusual
    started_at, ended_at = _time(state.start_time), _time(state.end_time)
    iterations = tuple(map(_read_iteration, state.iterations or ()))
    learning = state.cross_loop_learning or _Learning()
    times = {one.number: one.at for one in iterations if one.number is not None}
    fact = LoopFact(
        source=kind.name,
        file=file,
        loop_id=loop_id,
        inner_id=inner_id if inner_id != loop_id else "",
        directory=directory,
        modified_at=modified_at,
        task=state.task or "",
        raw_status=state.status,
        status=status,
        criteria=normalize.texts(state.completion),
        iteration=_or_none(state.current_iteration),
        max_iterations=_or_none(state.max_iterations),
        started_at=started_at,
        ended_at=ended_at,
        last_activity_at=newest(started_at, ended_at, *[one.at for one in iterations]),
        pid=_or_none(state.current_pid),
        iterations=iterations,
        last_result=state.last_result or "",
        learnings=normalize.lines(state.learnings),
        injected=tuple(_read_use(use, times) for use in learning.injected_patterns or ()),
        extracted=tuple(
            ExtractedPattern(pattern_id=one.pattern_id, new=one.new is not False)
            for one in learning.extracted_patterns or ()
        ),
    )
    return {"loops": (fact,), "reflections": tuple(_reflections_of_state(fact, state, modified_at))}


def _read_iteration(one: _Iteration) -> Iteration:
    return Iteration(
        number=_or_none(one.number),
        at=_time(one.timestamp),
        action=one.action or "",
        result=one.result or "",
        outcome=_VERIFIED[one.verified],
        learnings=normalize.lines(one.learnings),
        duration_ms=_or_none(one.duration_ms),
    )


def _read_use(use: _Injected, times: Mapping[int, datetime | None]) -> InjectedUse:
    successful, iteration = _or_none(use.successful), _or_none(use.iteration_used)
    applied = _or_none(use.applied)
    return InjectedUse(
        pattern_id=use.pattern_id,
        applied=successful is not None if applied is None else applied,
        successful=successful,
        iteration=iteration,
        at=times.get(iteration) if iteration is not None else None,
    )


def _reflections_of_state(fact: LoopFact, state: _State, modified_at: datetime) -> Iterator[Reflection]:
    def make(text: str, pointer: str, iteration: int | None, at: datetime | None) -> Reflection:
        return _reflection(STATE, fact.file, pointer, fact.loop_id, iteration, None, at or modified_at, text)

    for index, one in enumerate(fact.iterations):
        for text in one.learnings:
            yield make(text, f"/iterations/{index}/learnings", one.number, one.at)
    if state.learnings:
        last = newest(fact.ended_at, *[one.at for one in fact.iterations])
        for number, text in read_headed_lines(normalize.texts(state.learnings)):
            yield make(text, "/learnings", number, last)


def _read_analytics(file: str, kind: RecordKind, analytics: _Analytics, modified_at: datetime) -> Collections:
    loop_id, directory = _loop_of(file)
    items = analytics.iterations or []
    times = [_time(item.timestamp) for item in items]
    scores = [item.quality_score for item in items]
    started_at = _time(analytics.start_time)
    fact = LoopFact(
        source=kind.name,
        file=file,
        loop_id=loop_id,
        directory=directory,
        modified_at=modified_at,
        task=analytics.task_description or "",
        iteration=_or_none(analytics.total_iterations),
        started_at=started_at,
        last_activity_at=newest(*times),
        quality=tuple(score / 100 for score in scores if isinstance(score, float) and 0 <= score <= 100),
        duration_ms=_or_none(analytics.total_time_ms),
    )
    reflections = tuple(
        _reflection(ANALYTICS, file, place, loop_id, _or_none(item.iteration_number), None, at or modified_at, text)
        for index, (item, at) in enumerate(zip(items, times, strict=True))
        if item.reflections
        for number, text in enumerate(normalize.texts(item.reflections))
        if (place := f"/iterations/{index}/reflections/{number}")
    )
    return {"loops": (fact,), "reflections": reflections}


def _read_reflection(file: str, _kind: RecordKind, found: _Reflection, modified_at: datetime) -> Collections:
    if not found.content.strip():
        return {}
    reflection = _reflection(
        MEMORY_MANAGER,
        file,
        "",
        loop_of_reflection(file),
        found.iteration,
        _time(found.timestamp),
        modified_at,
        found.content,
        normalize.reflection_kind(found.type),
        normalize.effectiveness(found.effectiveness),
    )
    return {"reflections": (reflection,)}


def _reflection(
    shape: str,
    file: str,
    pointer: str,
    loop_id: str,
    iteration: int | None,
    at: datetime | None,
    other_time: datetime,
    text: str,
    kind: str = "",
    effectiveness: str = "",
) -> Reflection:
    return Reflection(
        id=reflection_id(loop_id, None, iteration, text_key(text)),
        shape=shape,
        file=file,
        pointer=pointer,
        loop_id=loop_id,
        iteration=iteration,
        at=at or other_time,
        at_approximate=at is None,
        kind=kind,
        learning=text,
        effectiveness=effectiveness,
    )


def _loop_of(file: str) -> tuple[str, str]:
    """Return the ID of the loop and its directory."""
    directory = loop_directory(file)
    if not directory:
        raise _Unusual
    return directory.rpartition("/")[2], directory


def _time(text: _Text) -> datetime | None:
    if not isinstance(text, str):
        return None
    time = parse_time(text)
    if time is None:
        raise _Unusual
    return time


def _or_none(value: _T | UnsetType) -> _T | None:
    return None if value is UNSET else value


_encoder: Final = msgspec.json.Encoder()
_READERS: Final[Mapping[str, tuple[Any, Callable[[str, RecordKind, Any, datetime], Collections]]]] = {
    STATE: (msgspec.json.Decoder(_State), _read_state),
    ANALYTICS: (msgspec.json.Decoder(_Analytics), _read_analytics),
    HOOK: (msgspec.json.Decoder(_Reflection), _read_reflection),
}
"""By `RecordKind.shape`, the decoder of a document and its reader."""
