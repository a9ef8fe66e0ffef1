"""Read reflections and join their copies; read the cross-task memory.

See docs/file-formats.md#reflections and docs/file-formats.md#cross-task-memory.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any, Final

from msgspec.structs import force_setattr, replace

from core.base.steps import group_pairs
from core.files.file_reader import Line
from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import TRIGGERS, MemoryTask, Reflection
from core.records.times import parse_time
from core.sources import normalize
from core.sources.keys import Count, Flag, Keys, Names, Text, Texts, Time, read_keys
from core.sources.normalize import Fields, document, quote_value
from core.sources.record_kinds import (
    ANALYTICS,
    BEST_OUTPUT,
    CROSS_TASK,
    EPISODIC,
    HOOK,
    MEMORY_MANAGER,
    REFLEXION,
    STATE,
    kind_of,
)

_HEADING: Final = re.compile(r"#{1,6}\s+Iteration\s+(\d{1,9})\s*$", re.IGNORECASE)
_NUMBERED: Final = re.compile(r"(\d{1,9})\.\w+$")
"""The number at the end of a file name: `reflection-10.json`, `003.json`."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_COUNTED: Final = re.compile(
    r"The log alone shows nothing to do differently.*|`.{1,4000}` failed with \".{0,4000}\" until .{1,4000} changed\.",
    re.DOTALL,
)
"""Learning of drafts of earlier versions that only counted actions, or only named the file that was changed."""
MEMORY_INDEX: Final = ".aiwg/ralph/memory/task-index.json"
_MEMORY_FOLDER: Final = ".aiwg/ralph/memory/reflections/"
_EPISODIC_KEYS: Final = frozenset({"attempt_id", "triggered_by", "reflection_type", "action_items", "observation"})
"""Keys that only reflections on attempts have."""
_RICHNESS: Final = {
    shape: rank
    for rank, shape in enumerate((EPISODIC, REFLEXION, HOOK, MEMORY_MANAGER, CROSS_TASK, ANALYTICS, BEST_OUTPUT, STATE))
}
"""Rank of the formats, most detailed first; decides which copy is used."""
_PASSED: Final = {True: Outcome.SUCCESS, False: Outcome.FAILURE, None: Outcome.UNKNOWN}
_SAME_TIME: Final = timedelta(seconds=60)
"""Maximum time difference for joining a reflection without a loop to one of a loop."""
_Place = tuple[str, str, int | None, int | None]  # Loop, task (only without a loop), attempt and iteration.


def read_reflections(
    file: str, value: Any, modified_at: datetime
) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    """Read all reflections of a file with a `shape`, except files about loops."""
    findings: list[Finding] = []
    kind = kind_of(file)
    shape = kind.shape if kind is not None else ""
    found: Iterable[Reflection]
    if shape == EPISODIC:
        found = _mark_superseded(tuple(_read_lines(file, value, modified_at, findings)))
    elif file.startswith(_MEMORY_FOLDER):
        found = _read_memory(file, value, modified_at, findings)
    elif shape == CROSS_TASK:
        # The reader of the task reports what is not about reflections.
        found = _read_memory_task(Fields(file, value, findings), modified_at) if isinstance(value, dict) else []
    elif (fields := document(file, value, findings)) is not None:
        found = [_read_document(fields, modified_at)]
    else:
        found = []
    reflections = tuple([reflection for reflection in found if reflection.text.strip()])
    if shape == CROSS_TASK:
        findings = [finding for finding in findings if "/reflections" in finding.pointer]
    return reflections, tuple(findings)


def _mark_superseded(reflections: Sequence[Reflection]) -> Iterator[Reflection]:
    """Drop drafts that have a final reflection, and mark superseded reflections.

    A final reflection with a learning supersedes earlier ones on the same attempt, iteration and kind.
    """
    latest = {
        _topic(one): index
        for index, one in enumerate(reflections)
        if not one.draft and one.learning and one.kind and one.attempt is not None
    }
    latest_final = {one.attempt: index for index, one in enumerate(reflections) if not one.draft}
    drafted: dict[int | None, datetime | None] = {}
    for index, one in enumerate(reflections):
        if not one.draft:
            at, superseded = drafted.get(one.attempt), index < latest.get(_topic(one), -1)
            is_changed = at is not None or superseded
            yield replace(one, drafted_at=at, superseded=superseded) if is_changed else one
        elif index > latest_final.get(one.attempt, -1):
            yield one
        elif one.has_learning and not one.at_approximate:
            drafted.setdefault(one.attempt, one.at)


def _topic(reflection: Reflection) -> tuple[int | None, int | None, str]:
    return reflection.attempt, reflection.iteration, reflection.kind


def _read_lines(
    file: str, lines: Sequence[Line], modified_at: datetime, findings: list[Finding]
) -> Iterator[Reflection]:
    task_id = file.split("/")[3]
    for line in lines:
        place = f"line {line.number}"
        if isinstance(line.value, dict):
            reflection = _episodic(Fields(file, line.value, findings, place), modified_at, task_id)
            if not (reflection.draft and _COUNTED.fullmatch(reflection.learning)):
                yield reflection
        else:
            message = f"expected an object, found {quote_value(line.value)}"
            findings.append(Finding(file, place, Severity.WARNING, "wrong-type", message))


def make_reflection(
    shape: str,
    file: str,
    pointer: str,
    at: datetime | None,
    other_time: datetime,
    loop_id: str,
    iteration: int | None,
    learning: str,
    **values: Any,
) -> Reflection:
    """Create a reflection with `values`; without `at`, `other_time` approximates it."""
    made = Reflection(
        id="",
        shape=shape,
        file=file,
        pointer=pointer,
        loop_id=loop_id,
        iteration=iteration,
        at=at or other_time,
        at_approximate=at is None,
        learning=learning,
        **values,
    )
    key = text_key(learning or made.text)
    # Nothing else refers to it yet, and a copy would take as long as all of this.
    force_setattr(made, "id", reflection_id(loop_id or made.task_id, made.attempt, iteration, key))
    return made


def _episodic(fields: Fields, modified_at: datetime, task_id: str, loop_id: str = "") -> Reflection:
    """Read a reflection on an attempt; `task_id` is the name of its folder."""
    trigger = normalize.word(fields.text("triggered_by"))
    return make_reflection(
        EPISODIC,
        fields.file,
        fields.pointer,
        fields.time("timestamp"),
        modified_at,
        loop_id,
        fields.count("iteration"),
        fields.text("learning"),
        task_id=fields.text("task_id") or task_id,
        attempt=fields.count("attempt_id", "attempt"),
        kind=normalize.reflection_kind(fields.text("reflection_type", "type")),
        outcome=normalize.outcome(trigger),
        trigger=trigger if trigger in TRIGGERS else "",
        observation=fields.text("observation"),
        analysis=fields.text("analysis"),
        actions=fields.texts("action_items"),
        draft=fields.flag("draft") or False,
    )


def _read_memory(file: str, value: Any, modified_at: datetime, findings: list[Finding]) -> Iterator[Reflection]:
    """Read the reflections in a file of the cross-task memory, in any layout."""
    if isinstance(value, list):
        entries = [
            (f"line {entry.number}", entry.value) if isinstance(entry, Line) else (f"/{index}", entry)
            for index, entry in enumerate(value)
        ]
    elif isinstance(value, dict) and isinstance(value.get("reflections"), list):
        entries = [(f"/reflections/{index}", entry) for index, entry in enumerate(value["reflections"])]
    else:
        entries = [("", value)]
    for pointer, entry in entries:
        if isinstance(entry, str):
            entry = {"content": entry}
        if not isinstance(entry, dict):
            message = f"expected a reflection, found {quote_value(entry)}"
            findings.append(Finding(file, pointer, Severity.WARNING, "wrong-type", message))
            continue
        fields = Fields(file, entry, findings, pointer)
        if _EPISODIC_KEYS.isdisjoint(entry):
            yield _read_document(fields, modified_at)
        else:
            folder = file.removeprefix(_MEMORY_FOLDER).rpartition("/")[0]
            yield _episodic(fields, modified_at, folder.rpartition("/")[2], fields.text("loop_id"))


class _DocumentKeys(Keys):
    timestamp: Time = None
    task_id: Text = None
    iteration: Annotated[Count, Names("iteration", "trial_number", "iteration_number")] = None
    effectiveness: Text = None


class _EvaluatorKeys(Keys):
    passed: Flag = None


class _SelfReflectionKeys(Keys):
    reflection_text: Text = None
    causal_reasoning: Text = None
    lessons_learned: Texts = None
    actionable_insights: Texts = None


class _ReflexionKeys(_DocumentKeys):
    self_reflection: _SelfReflectionKeys | None = None
    evaluator_output: _EvaluatorKeys | None = None


class _ManagerKeys(_DocumentKeys):
    content: Text = None
    type: Text = None


class _HookKeys(_DocumentKeys):
    type: Annotated[Text, Names("type", "reflection_type")] = None
    outcome: Text = None
    trajectory: Texts = None
    observation: Texts = None
    reflection: Annotated[Text, Names("reflection", "analysis")] = None
    strategy_change: Annotated[Text, Names("strategy_change", "learning")] = None
    action_items: Texts = None


def _read_document(fields: Fields, modified_at: datetime) -> Reflection:
    """Read a Reflexion, hook or MemoryManager reflection; its keys show the format."""
    keys: _DocumentKeys
    values: dict[str, Any]
    if "self_reflection" in fields.mapping and fields.inside("self_reflection") is not None:
        shape, keys = REFLEXION, (reflexion := read_keys(_ReflexionKeys, fields))
        own = reflexion.self_reflection or _SelfReflectionKeys()
        evaluator = reflexion.evaluator_output or _EvaluatorKeys()
        learning: str | None = "; ".join(normalize.texts(own.lessons_learned))
        values = {
            "outcome": _PASSED[evaluator.passed],
            "observation": own.reflection_text or "",
            "analysis": own.causal_reasoning or "",
            "actions": normalize.texts(own.actionable_insights),
        }
    elif "content" in fields.mapping:
        shape, keys = MEMORY_MANAGER, (manager := read_keys(_ManagerKeys, fields))
        learning, values = manager.content, {"kind": normalize.reflection_kind(manager.type)}
    else:
        shape, keys = HOOK, (hook := read_keys(_HookKeys, fields))
        learning = hook.strategy_change
        values = {
            "kind": normalize.reflection_kind(hook.type),
            "outcome": normalize.outcome(hook.outcome),
            "observation": "; ".join(normalize.texts(hook.trajectory) or normalize.texts(hook.observation)),
            "analysis": hook.reflection or "",
            "actions": normalize.texts(hook.action_items),
        }
    iteration = keys.iteration
    if iteration is None and not fields.pointer and (number := _NUMBERED.search(fields.file)):
        iteration = int(number[1])
    return make_reflection(
        shape,
        fields.file,
        fields.pointer,
        parse_time(keys.timestamp),
        modified_at,
        _loop_of_document(fields, keys.task_id or ""),
        iteration,
        learning or "",
        task_id=keys.task_id or "",
        effectiveness=normalize.effectiveness(keys.effectiveness),
        **values,
    )


def _loop_of_document(fields: Fields, task_id: str) -> str:
    """Return the loop ID from the record or the folder of its file, or ""."""
    if fields.file.startswith(_MEMORY_FOLDER):
        parts = fields.file.split("/")
        return fields.text("loop_id") or ("" if task_id or len(parts) == 5 else parts[-2])
    return loop_of_reflection(fields.file)


def loop_of_reflection(file: str) -> str:
    """Return the loop ID above or below `reflections/` outside the memory, or ""."""
    parts = file.split("/")
    if parts[2] == "reflections":
        return parts[-2] if len(parts) > 4 else ""
    return parts[-3]


def _read_memory_task(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Read the reflections of a cross-task memory task; a UUID in its tags is a loop."""
    at = fields.time("timestamp")
    task_id = fields.text("task_id", "id") or fields.file.rpartition("/")[2].removesuffix(".json")
    loop_id = next((tag for tag in fields.texts("tags") if _UUID.fullmatch(tag)), "")
    for _, item in fields.objects("reflections"):
        yield make_reflection(
            CROSS_TASK,
            item.file,
            item.pointer,
            item.time("timestamp"),
            at or modified_at,
            loop_id,
            item.count("iteration"),
            item.text("content"),
            task_id=task_id,
            kind=normalize.reflection_kind(item.text("type")),
            effectiveness=normalize.effectiveness(item.text("effectiveness")),
        )


def read_headed_lines(texts: Iterable[str]) -> Iterator[tuple[int | None, str]]:
    """Iterate the lines of learnings with the iteration in the heading above them."""
    number = None
    for line in "\n".join(texts).splitlines():
        if heading := _HEADING.match(line):
            number = int(heading[1])
        elif text := line.strip():
            yield number, text


def reflection_key(reflection: Reflection) -> str:
    """Return the normalized text; reflections with the same key are joined."""
    return text_key(reflection.text)


def text_key(text: str) -> str:
    return " ".join(text.split()).casefold().rstrip(".")


def join_reflections(reflections: Iterable[Reflection], aliases: Mapping[str, str]) -> dict[str, Reflection]:
    """Join reflections with the same text, loop and iteration.

    `reflections` must contain whole groups (see `reflection_key`). `aliases` maps other IDs of loops to the ID of the
    loop.
    """
    groups = group_pairs((reflection_key(reflection), reflection) for reflection in reflections)
    return {joined.id: joined for key, group in groups.items() for joined in join_group(key, group, aliases)}


def join_group(key: str, group: Iterable[Reflection], aliases: Mapping[str, str]) -> tuple[Reflection, ...]:
    """Join the reflections with the same `reflection_key`; see `join_reflections`."""
    found = [
        _with_id(reflection, key, loop_id=loop_id) if (loop_id := aliases.get(reflection.loop_id)) else reflection
        for reflection in group
    ]
    return tuple(found) if len(found) == 1 else tuple(_join_copies(found, key))


def _with_id(reflection: Reflection, text: str, **changes: Any) -> Reflection:
    """Change fields; set the ID from loop or task, attempt, iteration and text."""
    loop_id, iteration = changes.get("loop_id", reflection.loop_id), changes.get("iteration", reflection.iteration)
    owner = loop_id or changes.get("task_id", reflection.task_id)
    return replace(reflection, id=reflection_id(owner, reflection.attempt, iteration, text), **changes)


def reflection_id(owner: str, attempt: int | None, iteration: int | None, key: str) -> str:
    """Return the ID of a reflection; `key` is its `reflection_key`."""
    parts = f"{owner}\0{attempt}\0{iteration}\0{key}"
    return f"refl-{blake2b(parts.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _join_copies(group: Sequence[Reflection], text: str) -> Iterator[Reflection]:
    """Merge the copies of each place; incomplete places are joined to a matching one."""
    copies: dict[_Place, list[Reflection]] = {}
    for reflection in sorted(group, key=_rank):
        owner = (reflection.loop_id, "" if reflection.loop_id else reflection.task_id)
        copies.setdefault((*owner, reflection.attempt, reflection.iteration), []).append(reflection)
    incomplete = [place for place in copies if place[2] is None and (not place[0] or place[3] is None)]
    if incomplete:
        matches = _PlaceMatcher(copies)
        for place in sorted(incomplete, key=lambda place: (place[0] != "", place[3] is not None)):
            match = matches.find(place, copies[place][0].at)
            if match is not None:
                copies[match] += copies.pop(place)
    for (loop_id, _, _, iteration), same in copies.items():
        if len(same) == 1:
            yield same[0]
        else:
            same.sort(key=_rank)
            yield _with_id(same[0], text, loop_id=loop_id, iteration=iteration, **_merge(same))


def _rank(reflection: Reflection) -> tuple[int, str, str]:
    return _RICHNESS[reflection.shape], reflection.file, reflection.pointer


class _PlaceMatcher:
    """Finds the full place of a reflection that lacks the loop or the iteration."""

    def __init__(self, copies: Mapping[_Place, Sequence[Reflection]]) -> None:
        self._by_loop: dict[str, list[_Place]] = {}
        self._by_iteration: dict[int | None, list[_Place]] = {}
        for place in copies:
            if place[0]:
                self._by_loop.setdefault(place[0], []).append(place)
                self._by_iteration.setdefault(place[3], []).append(place)
        self._copies = copies
        self._times: dict[int | None, list[tuple[datetime, int]]] = {}

    def find(self, place: _Place, at: datetime | None) -> _Place | None:
        """Return the last place in the same loop, or without a loop the nearest in time."""
        loop_id, _, _, iteration = place
        if loop_id:
            others = (other for other in self._by_loop[loop_id] if other != place)
            return max(others, key=lambda other: other[3] or 0, default=None)
        same_iteration = self._by_iteration.get(iteration, [])
        if len(same_iteration) < 2:
            return same_iteration[0] if same_iteration else None
        return self._nearest(iteration, at) if at is not None else None

    def _nearest(self, iteration: int | None, at: datetime) -> _Place | None:
        places = self._by_iteration[iteration]
        times = self._times.get(iteration)
        if times is None:
            starts = [(self._copies[place][0].at, index) for index, place in enumerate(places)]
            times = self._times[iteration] = sorted((start, index) for start, index in starts if start is not None)
        after = bisect_left(times, (at, 0))
        near = [(abs(time - at), index) for time, index in times[max(after - 1, 0) : after + 1]]
        distance, index = min(near, default=(_SAME_TIME, 0))
        return places[index] if distance < _SAME_TIME else None


def _merge(copies: Sequence[Reflection]) -> dict[str, Any]:
    """Return the fields of the first copy that the others change, such as its gaps."""
    first, *others = copies
    files = dict.fromkeys(other.file for other in others if other.file != first.file)
    dated = next((copy for copy in copies if copy.at and not copy.at_approximate), first)
    return {
        "also_in": tuple(files),
        "at": dated.at,
        "at_approximate": dated.at_approximate,
        "task_id": next((copy.task_id for copy in copies if copy.task_id), ""),
        "kind": next((copy.kind for copy in copies if copy.kind), ""),
        "effectiveness": next((copy.effectiveness for copy in copies if copy.effectiveness), ""),
    }


def read_memory(file: str, value: Any, modified_at: datetime) -> tuple[tuple[MemoryTask, ...], tuple[Finding, ...]]:
    """Read the tasks of a task file or of `MEMORY_INDEX` (these are `indexed`).

    `modified_at` is the file's mtime in UTC, used for tasks without a time.
    """
    findings: list[Finding] = []
    fields = document(file, value, findings)
    if fields is None:
        return (), tuple(findings)
    if file != MEMORY_INDEX:
        stem = file.rpartition("/")[2].removesuffix(".json")
        return (_memory_task(fields, stem, modified_at),), tuple(findings)
    tasks = []
    for _, entry in fields.objects("tasks"):
        task_id = entry.text("task_id", "id")
        if task_id:
            tasks.append(replace(_memory_task(entry, task_id, None), indexed=True))
        else:
            entry.add("missing-id", "the entry has no task_id; skipped", entry.pointer)
    return tuple(tasks), tuple(findings)


def join_memory(tasks: Iterable[MemoryTask]) -> dict[str, MemoryTask]:
    """Join the tasks of task files and index by ID; task files take precedence."""
    joined: dict[str, MemoryTask] = {}
    for task in tasks:
        other = joined.get(task.id)
        if other is None:
            joined[task.id] = task
        else:
            first = other if other.file != MEMORY_INDEX else task
            joined[task.id] = replace(first, indexed=task.indexed or other.indexed)
    return joined


def _memory_task(fields: Fields, default_id: str, modified_at: datetime | None) -> MemoryTask:
    return fields.convert(
        MemoryTask,
        id=fields.text("task_id", "id") or default_id,
        description=fields.text("task_description", *normalize.TASK),
        at=fields.time("timestamp") or modified_at,
        outcome=normalize.outcome(fields.text("outcome")),
        quality=fields.rate("final_quality"),
        learnings=fields.lines("key_learnings"),
        file=fields.file,
    )
