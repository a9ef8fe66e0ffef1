"""Read reflections in all formats on disk as one record type (docs/file-formats.md#reflections)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL, Reflection
from core.sources import normalize
from core.sources.fields import Fields, document, shown
from core.sources.loop_facts import newest
from core.sources.loops import loop_of
from core.sources.record_kinds import CROSS_TASK, EPISODIC, HOOK, MEMORY_MANAGER, REFLEXION, STATE, kind_of
from core.storage.decoded import Line

_HEADING: Final = re.compile(r"#{1,6}\s+Iteration\s+(\d{1,9})\s*$", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRIGGERS: Final = frozenset({"failure", "success", "timeout", "manual"})
_PLACEHOLDERS: Final = (NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL)
_MEMORY_FOLDER: Final = ".aiwg/ralph/memory/reflections/"
_EPISODIC_KEYS: Final = frozenset({"attempt_id", "triggered_by", "reflection_type", "action_items", "observation"})
"""Keys of a reflection on an attempt."""


def read_reflections(
    file: str, value: Any, modified_at: datetime
) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    """Read all reflections in one file of a kind with a reflection `shape`."""
    findings: list[Finding] = []
    kind = kind_of(file)
    shape = kind.shape if kind is not None else ""
    # Other readers report the defects of files that contain more than reflections.
    is_own_file = shape in (EPISODIC, HOOK)
    if shape == EPISODIC:
        found = _mark_superseded(tuple(_read_lines(file, value, modified_at, findings)))
    elif file.startswith(_MEMORY_FOLDER):
        found = _read_memory(file, value, modified_at, findings)
    elif (fields := document(file, value, findings)) is None:
        return (), tuple(findings) if is_own_file else ()
    elif shape == HOOK:
        found = _read_document(fields, modified_at)
    elif shape == CROSS_TASK:
        found = _read_memory_task(fields, modified_at)
    elif shape == STATE:
        found = _read_loop_state(fields, modified_at)
    else:
        found = _read_measurements(shape, fields, modified_at)
    reflections = tuple(reflection for reflection in found if reflection.text.strip())
    if not is_own_file:
        findings = [finding for finding in findings if "/reflections" in finding.pointer]
    return reflections, tuple(findings)


def _mark_superseded(reflections: Sequence[Reflection]) -> Iterator[Reflection]:
    """Drop drafts of attempts with a later final reflection, and mark superseded reflections.

    A final reflection with a learning supersedes earlier ones on the same attempt, iteration and kind.
    """
    latest = {_topic(one): index for index, one in enumerate(reflections) if _can_supersede(one)}
    latest_final = {one.attempt: index for index, one in enumerate(reflections) if not one.draft}
    drafted: dict[int | None, datetime | None] = {}
    for index, one in enumerate(reflections):
        if not one.draft:
            at, superseded = drafted.get(one.attempt), index < latest.get(_topic(one), -1)
            is_changed = at is not None or superseded
            yield replace(one, drafted_at=at, superseded=superseded) if is_changed else one
        elif index > latest_final.get(one.attempt, -1):
            yield one
        elif one.teaches and not one.at_approximate:
            drafted.setdefault(one.attempt, one.at)


def _topic(reflection: Reflection) -> tuple[int | None, int | None, str]:
    return reflection.attempt, reflection.iteration, reflection.kind


def _can_supersede(reflection: Reflection) -> bool:
    """Whether it replaces earlier ones on its topic, which needs a kind."""
    return not reflection.draft and bool(reflection.learning and reflection.kind) and reflection.attempt is not None


def _read_lines(
    file: str, lines: Sequence[Line], modified_at: datetime, findings: list[Finding]
) -> Iterator[Reflection]:
    """Read `tasks/<id>/reflections.jsonl`."""
    task_id = file.split("/")[3]
    for line in lines:
        place = f"line {line.number}"
        if isinstance(line.value, dict):
            yield _episodic(Fields(file, line.value, findings, place), modified_at, task_id)
        else:
            message = f"expected an object, found {shown(line.value)}"
            findings.append(Finding(file, place, Severity.WARNING, "wrong-type", message))


def _episodic(fields: Fields, modified_at: datetime, task_id: str, loop_id: str = "") -> Reflection:
    """A reflection on an attempt; `task_id` comes from its folder."""
    at = fields.time("timestamp")
    trigger = normalize.word(fields.text("triggered_by"))
    learning, is_draft = fields.text("learning"), fields.flag("draft") or False
    return Reflection(
        id="",
        shape=EPISODIC,
        file=fields.file,
        pointer=fields.pointer,
        loop_id=loop_id,
        task_id=fields.text("task_id") or task_id,
        attempt=fields.count("attempt_id", "attempt"),
        iteration=fields.count("iteration"),
        at=at or modified_at,
        at_approximate=at is None,
        kind=normalize.reflection_kind(fields.text("reflection_type", "type")),
        outcome=normalize.outcome(trigger),
        trigger=trigger if trigger in _TRIGGERS else "",
        observation=fields.text("observation"),
        analysis=fields.text("analysis"),
        # The placeholder of a draft asks for a learning; it is not one.
        learning="" if is_draft and learning in _PLACEHOLDERS else learning,
        actions=fields.texts("action_items"),
        draft=is_draft,
    )


def _read_memory(file: str, value: Any, modified_at: datetime, findings: list[Finding]) -> Iterator[Reflection]:
    """Read a file of the cross-task memory: one reflection, or many in any layout."""
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
            message = f"expected a reflection, found {shown(entry)}"
            findings.append(Finding(file, pointer, Severity.WARNING, "wrong-type", message))
            continue
        fields = Fields(file, entry, findings, pointer)
        if _EPISODIC_KEYS.isdisjoint(entry):
            yield from _read_document(fields, modified_at)
        else:
            folder = file.removeprefix(_MEMORY_FOLDER).rpartition("/")[0]
            yield _episodic(fields, modified_at, folder.rpartition("/")[2], fields.text("loop_id"))


def _read_document(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Read a Reflexion, hook or MemoryManager reflection; its keys show which one."""
    at = fields.time("timestamp")
    common: dict[str, Any] = {
        "id": "",
        "file": fields.file,
        "pointer": fields.pointer,
        "loop_id": _loop_of_document(fields),
        "task_id": fields.text("task_id"),
        "iteration": fields.count("iteration", "trial_number", "iteration_number"),
        "at": at or modified_at,
        "at_approximate": at is None,
        "effectiveness": normalize.effectiveness(fields.text("effectiveness")),
    }
    if common["iteration"] is None and not fields.pointer:
        common["iteration"] = _number_in(fields.file)
    reflection = fields.inside("self_reflection")
    if reflection is not None:
        evaluator = fields.inside("evaluator_output")
        passed = evaluator.flag("passed") if evaluator else None
        yield Reflection(
            shape=REFLEXION,
            outcome=Outcome.UNKNOWN if passed is None else Outcome.SUCCESS if passed else Outcome.FAILURE,
            observation=reflection.text("reflection_text"),
            analysis=reflection.text("causal_reasoning"),
            learning="; ".join(reflection.texts("lessons_learned")),
            actions=reflection.texts("actionable_insights"),
            **common,
        )
    elif "content" in fields.mapping:
        kind = normalize.reflection_kind(fields.text("type"))
        yield Reflection(shape=MEMORY_MANAGER, kind=kind, learning=fields.text("content"), **common)
    else:
        yield Reflection(
            shape=HOOK,
            kind=normalize.reflection_kind(fields.text("type", "reflection_type")),
            outcome=normalize.outcome(fields.text("outcome")),
            observation="; ".join(fields.texts("trajectory", "observation")),
            analysis=fields.text("reflection", "analysis"),
            learning=fields.text("strategy_change", "learning"),
            actions=fields.texts("action_items"),
            **common,
        )


def _loop_of_document(fields: Fields) -> str:
    """The loop named by the folder before or after `reflections/`; "" in the external tree."""
    parts = fields.file.split("/")
    if fields.file.startswith(_MEMORY_FOLDER):
        return fields.text("loop_id") or ("" if fields.text("task_id") or len(parts) == 5 else parts[-2])
    if parts[2] == "reflections":
        return parts[-2] if len(parts) > 4 else ""
    return parts[-3]


def _number_in(file: str) -> int | None:
    """The number at the end of a file name: `reflection-10.json`, `003.json`."""
    found = re.search(r"(\d{1,9})\.\w+$", file)
    return int(found[1]) if found else None


def _read_memory_task(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Read the reflections of a cross-task memory task. External loops add their UUID to its tags."""
    at = fields.time("timestamp")
    task_id = fields.text("task_id", "id") or fields.file.rpartition("/")[2].removesuffix(".json")
    loop_id = next((tag for tag in fields.texts("tags") if _UUID.fullmatch(tag)), "")
    for _, item in fields.objects("reflections"):
        own_time = item.time("timestamp")
        yield Reflection(
            id="",
            shape=CROSS_TASK,
            file=fields.file,
            pointer=item.pointer,
            loop_id=loop_id,
            task_id=task_id,
            iteration=item.count("iteration"),
            at=own_time or at or modified_at,
            at_approximate=own_time is None,
            kind=normalize.reflection_kind(item.text("type")),
            learning=item.text("content"),
            effectiveness=normalize.effectiveness(item.text("effectiveness")),
        )


def _read_measurements(shape: str, fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Read the strings beside the iterations of analytics and best output."""
    loop_id = loop_of(fields)
    for _, item in fields.objects("iterations"):
        at = item.time("timestamp") or modified_at
        number = item.count(*normalize.ITERATION_NUMBER)
        for index, text in enumerate(item.texts("reflections")):
            yield Reflection(
                id="",
                shape=shape,
                file=fields.file,
                pointer=f"{item.pointer}/reflections/{index}",
                loop_id=loop_id,
                iteration=number,
                at=at,
                at_approximate=True,
                learning=text,
            )


def _read_loop_state(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Read the learnings of a loop state: those of its iterations, and the text for the whole loop."""
    common: dict[str, Any] = {
        "id": "",
        "shape": STATE,
        "file": fields.file,
        "loop_id": loop_of(fields),
        "at_approximate": True,
    }
    last = newest(fields.time(*normalize.ENDED), fields.time(*normalize.UPDATED))
    for _, item in fields.objects("iterations"):
        at = item.time("timestamp", "completed_at", "started_at")
        last = newest(last, at)
        number = item.count(*normalize.ITERATION_NUMBER)
        pointer = f"{item.pointer}/learnings"
        for line in item.lines("learnings"):
            yield Reflection(pointer=pointer, iteration=number, at=at or modified_at, learning=line, **common)
    for name in normalize.LEARNINGS:
        number = None
        for line in "\n".join(fields.texts(name)).splitlines():
            if heading := _HEADING.match(line):
                number = int(heading[1])
            elif line := line.strip():
                yield Reflection(pointer=f"/{name}", iteration=number, at=last or modified_at, learning=line, **common)
