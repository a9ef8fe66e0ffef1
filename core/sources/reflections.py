"""Reflections: seven shapes on disk, one record, each told once (formats C9, 3.14)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from msgspec.structs import replace

from core.records.findings import Finding, Severity
from core.records.loops import Outcome
from core.records.reflections import NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL, Reflection
from core.sources import normalize
from core.sources.fields import Fields, document, shown
from core.sources.loops import loop_of, newest
from core.sources.path_kinds import (
    ANALYTICS,
    ARCHIVE,
    BEST_OUTPUT,
    CURRENT,
    EXTERNAL,
    EXTERNAL_ARCHIVE,
    EXTERNAL_STATE,
    LOOPS,
    loop_source,
)
from core.storage.decoded import Line

EPISODIC: Final = "episodic"
REFLEXION: Final = "reflexion"
HOOK: Final = "hook"
MEMORY_MANAGER: Final = "memory-manager"
CROSS_TASK: Final = "cross-task"
STATE: Final = "state"

_RICHEST: Final = (EPISODIC, REFLEXION, HOOK, MEMORY_MANAGER, CROSS_TASK, ANALYTICS, BEST_OUTPUT, STATE)
"""Of several copies of a reflection the one in the shape that tells most is kept."""
_RANK: Final = {shape: rank for rank, shape in enumerate(_RICHEST)}
_OWN_FILES: Final = frozenset({EPISODIC, HOOK, MEMORY_MANAGER})
"""Shapes whose files hold nothing else; of the others a reader of loops or tasks tells what is wrong."""
_STATES: Final = frozenset({LOOPS, ARCHIVE, CURRENT, EXTERNAL, EXTERNAL_ARCHIVE, EXTERNAL_STATE})
_HEADING: Final = re.compile(r"#{1,6}\s+Iteration\s+(\d{1,9})\s*$", re.IGNORECASE)
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRIGGERS: Final = frozenset({"failure", "success", "timeout", "manual"})
_LEARNINGS: Final = ("learnings", "accumulatedLearnings")
_SAME_TIME: Final = timedelta(seconds=60)
"""A reflection that names no loop belongs to the loop that said the same within this time."""
_MEMORY: Final = ".aiwg/ralph/memory/reflections/"
_EPISODIC_KEYS: Final = frozenset({"attempt_id", "triggered_by", "reflection_type", "action_items", "observation"})
"""Keys of a reflection on an attempt."""
_Place = tuple[str, str, int | None, int | None]
"""Where something was learned: loop, task (only where no loop is named), attempt, iteration."""


def reflection_shape(file: str) -> str:
    """Which shape of reflection a project-relative file can hold, or "" for none.

    Below `reflections/` of the internal tree the content tells the shapes apart; they count as `hook` here.
    """
    match file.split("/"):
        case [".aiwg", "ralph", "tasks", _, "reflections.jsonl"]:
            return EPISODIC
        case [".aiwg", "ralph", "memory", "tasks", name] if name.endswith(".json"):
            return CROSS_TASK
        case [".aiwg", "ralph", "memory", "reflections", *_, name] if _is_document(name) or name.endswith(".jsonl"):
            return HOOK
        case [".aiwg", "ralph", "reflections", "loops", _, name] if _is_document(name):
            return HOOK
        case [".aiwg", "ralph", "reflections", folder, name] if _is_document(name) and folder != "patterns":
            return HOOK
        case [".aiwg", "ralph" | "ralph-external", *_, "reflections", name] if name.endswith(".json"):
            return MEMORY_MANAGER if len(file.split("/")) <= 6 else ""
    source = loop_source(file)
    if source in (ANALYTICS, BEST_OUTPUT):
        return source
    return STATE if source in _STATES else ""


def read_reflections(
    file: str, value: Any, modified_at: datetime
) -> tuple[tuple[Reflection, ...], tuple[Finding, ...]]:
    """All reflections told in one file for which `reflection_shape` names a shape.

    Args:
        file: Project-relative path.
        value: The decoded JSON or YAML document; for `.jsonl` its `Line`s.
        modified_at: The file's mtime, UTC.
    """
    findings: list[Finding] = []
    shape = reflection_shape(file)
    if shape == EPISODIC:
        told = _standing(tuple(_of_lines(file, value, modified_at, findings)))
    elif is_memory_reflection(file):
        told = _of_memory(file, value, modified_at, findings)
    elif (fields := document(file, value, findings)) is None:
        return (), tuple(findings) if shape in _OWN_FILES else ()
    elif shape in (HOOK, MEMORY_MANAGER):
        told = _of_document(fields, modified_at)
    elif shape == CROSS_TASK:
        told = _of_task(fields, modified_at)
    elif shape == STATE:
        told = _of_state(fields, modified_at)
    else:
        told = _of_iterations(shape, fields, modified_at)
    kept = tuple(reflection for reflection in told if reflection.text.strip())
    if shape not in _OWN_FILES:
        findings = [finding for finding in findings if "/reflections" in finding.pointer]
    return kept, tuple(findings)


def _standing(told: Sequence[Reflection]) -> Iterator[Reflection]:
    """Those of one `reflections.jsonl`, without the drafts of attempts on which a later line is no draft.

    Of several on one attempt, of one kind, the last that has a learning supersedes those before it.
    """
    latest = {_matter(reflection): place for place, reflection in enumerate(told) if _supersedes(reflection)}
    improved = {reflection.attempt: place for place, reflection in enumerate(told) if not reflection.draft}
    drafted: dict[int | None, datetime | None] = {}
    for place, reflection in enumerate(told):
        if not reflection.draft:
            at, superseded = drafted.get(reflection.attempt), place < latest.get(_matter(reflection), -1)
            changed = at is not None or superseded
            yield replace(reflection, drafted_at=at, superseded=superseded) if changed else reflection
        elif place > improved.get(reflection.attempt, -1):
            yield reflection
        elif reflection.teaches and not reflection.at_approximate:
            drafted.setdefault(reflection.attempt, reflection.at)


def _matter(reflection: Reflection) -> tuple[int | None, int | None, str]:
    """What a reflection is about."""
    return reflection.attempt, reflection.iteration, reflection.kind


def _supersedes(reflection: Reflection) -> bool:
    """Whether it says what earlier ones on the same matter said: those of no kind may well be of different ones."""
    return not reflection.draft and bool(reflection.learning and reflection.kind) and reflection.attempt is not None


def reflection_key(reflection: Reflection) -> str:
    """Reflections with different keys are never the same one: the group to join again after a change."""
    return " ".join(reflection.text.split()).casefold().rstrip(".")


def join_reflections(reflections: Iterable[Reflection], aliases: Mapping[str, str]) -> dict[str, Reflection]:
    """By id, each told once: the same sentence of the same loop and iteration is one reflection (C9).

    Args:
        reflections: Whole groups (see `reflection_key`), from any number of files.
        aliases: Other ids of loops -> the id of the row (`LoopBook.aliases`).
    """
    groups: dict[str, list[Reflection]] = {}
    for reflection in reflections:
        groups.setdefault(reflection_key(reflection), []).append(reflection)
    return {kept.id: kept for key, group in groups.items() for kept in join_group(key, group, aliases)}


def join_group(key: str, group: Iterable[Reflection], aliases: Mapping[str, str]) -> tuple[Reflection, ...]:
    """`join_reflections` for the one group with this `reflection_key`."""
    told = [
        replace(reflection, loop_id=aliases[reflection.loop_id]) if reflection.loop_id in aliases else reflection
        for reflection in group
    ]
    return (_named(told[0], key),) if len(told) == 1 else tuple(_once(told, key))


def _named(reflection: Reflection, text: str) -> Reflection:
    """With the id that its loop or task, its place there and its text make."""
    owner = reflection.loop_id or reflection.task_id
    parts = f"{owner}\0{reflection.attempt}\0{reflection.iteration}\0{text}"
    digest = blake2b(parts.encode("utf-8", "replace"), digest_size=6).hexdigest()
    return replace(reflection, id=f"refl-{digest}")


def _once(group: Sequence[Reflection], text: str) -> Iterator[Reflection]:
    """The different reflections among some that say the same, the richest copy of each."""
    copies: dict[_Place, list[Reflection]] = {}
    for reflection in sorted(group, key=_rank):
        owner = (reflection.loop_id, "" if reflection.loop_id else reflection.task_id)
        copies.setdefault((*owner, reflection.attempt, reflection.iteration), []).append(reflection)
    vague = [place for place in copies if place[2] is None and (not place[0] or place[3] is None)]
    homes = _Homes(copies) if vague else None
    for place in sorted(vague, key=lambda place: (place[0] != "", place[3] is not None)):
        home = homes.of(place, copies[place][0].at) if homes else None
        if home is not None:
            copies[home] += copies.pop(place)
    for (loop_id, _, _, iteration), same in copies.items():
        kept = _merged(sorted(same, key=_rank))
        yield _named(replace(kept, loop_id=loop_id, iteration=iteration), text)


def _rank(reflection: Reflection) -> tuple[int, str, str]:
    return _RANK[reflection.shape], reflection.file, reflection.pointer


class _Homes:
    """Where the reflection of a vague place (no loop, or no iteration) may be told with a precise one."""

    def __init__(self, copies: Mapping[_Place, Sequence[Reflection]]) -> None:
        self._of_loop: dict[str, list[_Place]] = {}
        self._of_iteration: dict[int | None, list[_Place]] = {}
        for place in copies:
            if place[0]:
                self._of_loop.setdefault(place[0], []).append(place)
                self._of_iteration.setdefault(place[3], []).append(place)
        self._copies = copies
        self._times: dict[int | None, list[tuple[datetime, int]]] = {}

    def of(self, place: _Place, at: datetime | None) -> _Place | None:
        """The place in the same loop with the highest iteration; without a loop, the one told at the same time."""
        loop_id, _, _, iteration = place
        if loop_id:
            of_loop = [other for other in self._of_loop[loop_id] if other != place]
            return max(of_loop, key=lambda other: other[3] or 0, default=None)
        others = self._of_iteration.get(iteration, [])
        if len(others) < 2:
            return others[0] if others else None
        return self._nearest(iteration, at) if at is not None else None

    def _nearest(self, iteration: int | None, at: datetime) -> _Place | None:
        others = self._of_iteration[iteration]
        times = self._times.get(iteration)
        if times is None:
            told = [(self._copies[other][0].at, index) for index, other in enumerate(others)]
            times = self._times[iteration] = sorted((moment, index) for moment, index in told if moment is not None)
        after = bisect_left(times, (at, 0))
        near = [(abs(moment - at), index) for moment, index in times[max(after - 1, 0) : after + 1]]
        distance, index = min(near, default=(_SAME_TIME, 0))
        return others[index] if distance < _SAME_TIME else None


def _merged(copies: Sequence[Reflection]) -> Reflection:
    """The first copy, with what only the others tell."""
    kept, *others = copies
    if not others:
        return kept
    files = dict.fromkeys(other.file for other in others if other.file != kept.file)
    exact = next((other for other in copies if other.at and not other.at_approximate), kept)
    return replace(
        kept,
        also_in=tuple(files),
        at=exact.at,
        at_approximate=exact.at_approximate,
        task_id=next((other.task_id for other in copies if other.task_id), ""),
        kind=next((other.kind for other in copies if other.kind), ""),
        effectiveness=next((other.effectiveness for other in copies if other.effectiveness), ""),
    )


def _is_document(name: str) -> bool:
    return name.endswith((".json", ".yaml", ".yml")) and not name.startswith("index.")


def _of_lines(file: str, lines: Sequence[Line], modified_at: datetime, findings: list[Finding]) -> Iterator[Reflection]:
    """`tasks/<id>/reflections.jsonl` of (1)."""
    task_id = file.split("/")[3]
    for line in lines:
        place = f"line {line.number}"
        if not isinstance(line.value, dict):
            message = f"expected an object, found {shown(line.value)}"
            findings.append(Finding(file, place, Severity.WARNING, "wrong-type", message))
            continue
        yield _episodic(Fields(file, line.value, findings, place), modified_at, task_id)


def _episodic(fields: Fields, modified_at: datetime, task_id: str, loop_id: str = "") -> Reflection:
    """A reflection on an attempt; `task_id` is that of its folder."""
    at = fields.time("timestamp")
    trigger = normalize.word(fields.text("triggered_by"))
    learning, draft = fields.text("learning"), fields.flag("draft") or False
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
        # The placeholder of a draft without a learning asks for one; it is not a learning.
        learning="" if draft and learning in (NOTHING_LEARNED, NOTHING_LEARNED_IN_ALL) else learning,
        actions=fields.texts("action_items"),
        draft=draft,
    )


def is_memory_reflection(file: str) -> bool:
    """Whether a project-relative file holds reflections of the cross-task memory: one, or many."""
    return file.startswith(_MEMORY)


def _of_memory(file: str, value: Any, modified_at: datetime, findings: list[Finding]) -> Iterator[Reflection]:
    """Reflections below `memory/reflections/`: one document, a list, JSON lines, or an object with `reflections`."""
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
            yield from _of_document(fields, modified_at)
        else:
            folder = file.removeprefix(_MEMORY).rpartition("/")[0]
            yield _episodic(fields, modified_at, folder.rpartition("/")[2], fields.text("loop_id"))


def _of_document(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """A file of its own: Reflexion, hook or MemoryManager, told apart by their keys."""
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
        yield Reflection(
            shape=MEMORY_MANAGER,
            kind=normalize.reflection_kind(fields.text("type")),
            learning=fields.text("content"),
            **common,
        )
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
    """The folder before `reflections/`, or the one after it; the external tree keeps them without a loop."""
    parts = fields.file.split("/")
    if fields.file.startswith(_MEMORY):
        return fields.text("loop_id") or ("" if fields.text("task_id") or len(parts) == 5 else parts[-2])
    if parts[2] == "reflections":
        return parts[-2] if len(parts) > 4 else ""
    return parts[-3]


def _number_in(file: str) -> int | None:
    """The number at the end of a file's name: `reflection-10.json`, `003.json`."""
    found = re.search(r"(\d{1,9})\.\w+$", file)
    return int(found[1]) if found else None


def _of_task(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Embedded in a task of the cross-task memory. External loops leave their UUID among the tags."""
    at = fields.time("timestamp")
    task_id = fields.text("task_id", "id") or fields.file.rpartition("/")[2].removesuffix(".json")
    loop_id = next((tag for tag in fields.texts("tags") if _UUID.fullmatch(tag)), "")
    for _, item in fields.objects("reflections"):
        own = item.time("timestamp")
        yield Reflection(
            id="",
            shape=CROSS_TASK,
            file=fields.file,
            pointer=item.pointer,
            loop_id=loop_id,
            task_id=task_id,
            iteration=item.count("iteration"),
            at=own or at or modified_at,
            at_approximate=own is None,
            kind=normalize.reflection_kind(item.text("type")),
            learning=item.text("content"),
            effectiveness=normalize.effectiveness(item.text("effectiveness")),
        )


def _of_iterations(shape: str, fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Strings beside the iterations of analytics and best output."""
    loop_id = loop_of(fields)
    for _, item in fields.objects("iterations"):
        at = item.time("timestamp") or modified_at
        number = item.count("iteration_number", "iteration", "number")
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


def _of_state(fields: Fields, modified_at: datetime) -> Iterator[Reflection]:
    """Learnings of a state file: of its iterations, and the text for the whole loop."""
    loop_id = loop_of(fields)
    common: dict[str, Any] = {"id": "", "shape": STATE, "file": fields.file, "loop_id": loop_id}
    last = newest(fields.time(*normalize.ENDED), fields.time(*normalize.UPDATED))
    for _, item in fields.objects("iterations"):
        at = item.time("timestamp", "completed_at", "started_at")
        last = newest(last, at)
        number = item.count("number", "iteration", "iteration_number")
        for line in item.lines("learnings"):
            yield Reflection(
                pointer=f"{item.pointer}/learnings",
                iteration=number,
                at=at or modified_at,
                at_approximate=True,
                learning=line,
                **common,
            )
    for name in _LEARNINGS:
        number = None
        for text in fields.texts(name):
            for line in text.splitlines():
                heading = _HEADING.match(line)
                if heading:
                    number = int(heading[1])
                elif line.strip():
                    yield Reflection(
                        pointer=f"/{name}",
                        iteration=number,
                        at=last or modified_at,
                        at_approximate=True,
                        learning=line.strip(),
                        **common,
                    )
