"""Read the searched records of task folders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from core.episodes.history import TaskFiles, read_attempts
from core.records.episodes import Attempt, Task
from core.records.times import parse_time
from core.search.words import ALL_PLACES, EVERYTHING, HitKind, SearchHit, SearchPlace, SearchReader, SearchWords
from core.sources import episodes as sources
from core.sources import normalize
from core.sources.actions import LEADING_BYTES, MAX_TEXT, ActionSummary, to_text
from core.sources.fields import Fields
from core.sources.reflections import read_reflections
from core.storage.decoded import MAX_DEPTH
from core.storage.file_reader import MAX_BYTES, MAX_PATTERN_BYTES
from core.storage.json_reader import decode_json, decode_jsonl

if TYPE_CHECKING:
    from core.config.paths import ProjectPaths

_ACTION_TEXTS: Final = ("type", "tool", "params", "error", "output", "reasoning", "expected_outcome")
_ENDED: Final = ("ended", "timestamp", "at")  # keys of the time of a result; the file's mtime may be that of a copy
_MAX_TOOL: Final = 80  # characters of the name of a tool
_MAX_CACHED_OWNERS: Final = 1024


class Owner(NamedTuple):
    """Task of a hit, with its attempts by number."""

    task: Task
    attempts: Mapping[int, Attempt]


class LogPart:
    """A part of an action log; `lines` and `actions` are the numbers of its last line and action."""

    __slots__ = ("actions", "attempt", "file", "lines", "task_id")

    def __init__(self, file: str, task_id: str, attempt: int, lines: int = 0, actions: int = 0) -> None:
        self.file, self.task_id, self.attempt = file, task_id, attempt
        self.lines, self.actions = lines, actions


class TaskRecords(SearchReader):
    """Reads the records of task folders that contain all words; by default, all records.

    A record may be found several times: as an entry of the trajectory or in the summary besides its own file.
    """

    def __init__(
        self, paths: ProjectPaths, words: SearchWords = EVERYTHING, places: frozenset[SearchPlace] = ALL_PLACES
    ) -> None:
        super().__init__(paths, words)
        self._places: Final = places
        self.read: Final[tuple[list[Task], list[Attempt]]] = [], []  # what `documents` has parsed
        self.owner: Final = lru_cache(_MAX_CACHED_OWNERS)(self._owner)

    def _owner(self, task_id: str) -> Owner:
        return Owner(*read_attempts(self._paths, task_id)) if task_id else Owner(Task(id=""), {})

    def documents(self, files: TaskFiles) -> Iterator[SearchHit]:
        """Yield the records of a task outside of the action logs, the summary last."""
        if SearchPlace.REFLECTIONS in self._places:
            yield from self._reflections(files.path(sources.REFLECTIONS), files.task_id)
        if SearchPlace.TASKS in self._places:
            yield from self._documents(files)
            yield from self._summary(files.path(sources.SUMMARY), files.task_id)

    def _documents(self, files: TaskFiles) -> Iterator[SearchHit]:
        """Search the metadata, the attempts, their results, and the milestones."""
        yield from self._metadata(files.path(sources.METADATA), files.task_id)
        trajectory = files.path(sources.TRAJECTORY)
        value = self._object(trajectory, self._words.may_be_in)
        entries = sources.parse_attempts(trajectory, value)[0] if value else ()
        self.read[1].extend(entries)
        for number in files.numbers:
            yield from self._attempt(files, number)
            yield from self._results(files, number)
        for one in entries:
            if text := self._match(_attempt_texts((one,))):
                yield self._of_attempt(one, trajectory, text, HitKind.ENTRY)
        for milestone in sources.read_milestones(Fields(trajectory, value, [])):
            if text := self._match((milestone.event, milestone.details)):
                yield SearchHit(
                    trajectory, files.task_id, text, milestone.at, milestone.attempt, "/milestones", HitKind.DOCUMENT
                )

    def _metadata(self, file: str, task_id: str) -> Iterator[SearchHit]:
        value = self._object(file, lambda data: self._words.may_be_in(data + task_id.encode("utf-8", "replace")))
        tasks = sources.parse_tasks(file, value)[0] if value else ()
        self.read[0].extend(tasks)
        for task in tasks:
            texts = (task.description, task.criteria, *task.tags, *task.related, task.agent, task.loop_id, task_id)
            if text := self._match(texts):
                yield SearchHit(file, task_id, text, task.updated_at or task.created_at)

    def _attempt(self, files: TaskFiles, number: int) -> Iterator[SearchHit]:
        """Search the files of an attempt as one record; words may be in different files."""
        paths = [files.path(name, number) for name in (sources.ATTEMPT, sources.OUTCOME, sources.PLAN)]
        raws = {file: raw for file in paths if (raw := self._read(file)) is not None}
        name = f"{files.task_id}.{number}"
        together = b"\n".join((*(raw.data for raw in raws.values()), name.encode("utf-8", "replace")))
        if not raws or not self._words.may_be_in(together):
            return
        parts: list[Attempt] = []
        steps: list[str] = []
        for file in [file for file in paths[:2] if file in raws]:
            value = self._decode(file, raws[file].data)
            parts += sources.parse_attempts(file, value)[0] if isinstance(value, dict) else ()
            steps += _collect_texts(value["plan"]) if isinstance(value, dict) and "plan" in value else ()
        plan = raws.get(paths[2])
        self.read[1].extend(parts)
        written = plan.data.decode("utf-8", "replace")[:MAX_TEXT] if plan else ""
        if text := self._match((*_attempt_texts(parts), *steps, written, name)):
            one = parts[0] if parts else Attempt(task_id=files.task_id, number=number)
            yield self._of_attempt(one, next(iter(raws)), text, HitKind.ATTEMPT)

    def _of_attempt(self, one: Attempt, file: str, text: str, kind: HitKind) -> SearchHit:
        at = one.ended_at or one.started_at
        if at is None and (known := self.owner(one.task_id).attempts.get(one.number)):
            at = known.ended_at or known.started_at
        return SearchHit(file, one.task_id, text, at, one.number, kind=kind)

    def _results(self, files: TaskFiles, number: int) -> Iterator[SearchHit]:
        for name in files.results(number):
            file = f"{files.path(sources.RESULTS, number)}/{name}"
            raw = self._read(file)
            if raw is None or not self._words.may_be_in(raw.data + name.encode("utf-8", "replace")):
                continue
            value = decode_json(raw.data).value if name.endswith(".json") else None
            texts = _collect_texts(value) if value is not None else [raw.data.decode("utf-8", "replace")]
            if text := self._match((name, *texts)):
                times = [parse_time(value.get(key)) for key in _ENDED] if isinstance(value, dict) else []
                known = self.owner(files.task_id).attempts.get(number)
                times += (known.ended_at, known.started_at) if known else ()
                yield SearchHit(
                    file, files.task_id, text, next(filter(None, times), None), number, kind=HitKind.DOCUMENT
                )

    def _summary(self, file: str, task_id: str) -> Iterator[SearchHit]:
        if text := self._match(_collect_texts(self._object(file, self._words.may_be_in))):
            task = self.owner(task_id).task
            yield SearchHit(file, task_id, text, task.updated_at or task.created_at, kind=HitKind.SUMMARY)

    def _reflections(self, file: str, task_id: str) -> Iterator[SearchHit]:
        raw = self._read(file)
        if raw is None or not any(self._lines(raw.data)):
            return
        lines, problems = decode_jsonl(raw.data)
        self.findings += (problem.finding(file) for problem in problems)
        for one in read_reflections(file, lines, raw.stamp.modified_at)[0]:
            if text := self._match((one.learning, one.analysis, one.observation, *one.actions)):
                yield SearchHit(file, task_id, text, one.at, one.attempt, one.pointer, HitKind.REFLECTION)

    def log(self, file: str, task_id: str, attempt: int) -> Iterator[SearchHit]:
        """Yield the actions of one log."""
        raw = self._read(file, MAX_PATTERN_BYTES)
        if raw is not None and self._words.may_be_in(raw.data):
            yield from self.lines(raw.data[: raw.data.rfind(b"\n") + 1], LogPart(file, task_id, attempt))

    def lines(self, data: bytes, part: LogPart) -> Iterator[SearchHit]:
        """Yield the actions of complete lines; `part` counts all of them."""
        for line in data.split(b"\n")[:-1]:
            part.lines += 1
            if line.lstrip(LEADING_BYTES)[:1] != b"{":
                continue
            part.actions += 1
            if len(line) > MAX_BYTES or not self._words.may_be_in(line):
                continue
            value = _decode_line(line)
            text = self._match(_action_texts(value))
            summary = ActionSummary(success=normalize.flag(value.get("success")), error=value.get("error"))
            kind = HitKind.FAILED if summary.has_failed else HitKind.ACTION
            if text and any(kind in place.kinds for place in self._places):
                at = parse_time(value.get("timestamp")) or parse_time(value.get("at"))
                pointer = f"line {part.lines}"
                hit = SearchHit(part.file, part.task_id, text, at, part.attempt, pointer, kind, part.actions)
                yield hit._replace(tool=to_text(value.get("tool") or value.get("type"))[:_MAX_TOOL])


def _attempt_texts(parts: Sequence[Attempt]) -> Iterator[str]:
    for one in parts:
        yield from (one.plan, one.reason, *one.worked, *one.failed, *one.suggestions, one.agent)


def _action_texts(action: Mapping[str, Any]) -> list[str]:
    texts: list[str] = []
    for name in _ACTION_TEXTS:
        value = action.get(name)
        if name == "params":
            texts += _collect_texts(value, numbers=True)
        elif name != "tool" or not _is_same_word(value, action.get("type")):
            texts.append(to_text(value))
    return texts


def _is_same_word(one: Any, other: Any) -> bool:
    return one == other or normalize.word(one) == normalize.word(other)


def _collect_texts(value: Any, *, numbers: bool = False, levels: int = MAX_DEPTH) -> Iterator[str]:
    """Yield all texts, and optionally numbers, in a JSON value, without its keys."""
    if isinstance(value, dict | list):
        for item in (value.values() if isinstance(value, dict) else value) if levels else ():
            if isinstance(item, str):
                yield item[:MAX_TEXT]
                continue
            yield from _collect_texts(item, numbers=numbers, levels=levels - 1)
    elif numbers or isinstance(value, str):
        yield to_text(value)


def _decode_line(line: bytes) -> dict[str, Any]:
    """Decode a JSON object in a log; return {} if the line does not contain one."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        value = decode_json(line).value
    return value if isinstance(value, dict) else {}
