"""An adapter for tests, whose files are `notes/*.jsonl`, `state.json` and `lessons.md` in the folder `.fake`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from msgspec import Struct

from core.records.loops import Iteration, Loop, LoopDetails, LoopStatus
from core.records.reflections import Lesson, LessonKind
from core.sources.adapters.contract import Delivery, Moment
from core.sources.adapters.folders import Folders
from core.sources.adapters.lessons import bullets, lesson_id
from core.sources.adapters.runner_files import RunnerFiles

START: Final = datetime(2026, 11, 20, 9, tzinfo=UTC)


class Notes(Struct):
    """State of a transcript: the number of lines, and the last text."""

    count: int = 0
    text: str = ""


class NotesFold:
    name = "notes"
    version = 1
    state = Notes

    def add(self, state: Notes, line: bytes) -> None:
        state.text = str(json.loads(line)["text"])
        state.count += 1


class FakeAdapter:
    """Each transcript is a loop, of which the last line is the task."""

    title = "Fake runner"
    versions = "1"
    contains = "texts"
    lacks = "tokens"

    def __init__(self, name: str = "fake") -> None:
        self.name = name
        self.fails = ""  # name of the method that raises

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        self._check("fingerprint")
        folder = folders.project / ".fake"
        return (".fake",) if folder.is_dir() else ()

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        self._check("loops")
        for path in files.names(files.folders.project / ".fake/notes", "*.jsonl"):
            folded = files.fold(path, NotesFold())
            if folded is not None and folded.state.count:
                yield self._loop(path, folded.state, files)

    def _loop(self, path: Path, state: Notes, files: RunnerFiles) -> Loop:
        return Loop(
            id=f"{self.name}:{path.stem}",
            runner=self.name,
            owner=self.name,
            sources=(self.name,),
            task=state.text,
            iteration=state.count,
            status=LoopStatus.RUNNING,
            started_at=START,
            files=(files.shown(path),),
        )

    def details(self, loop: Loop, files: RunnerFiles) -> LoopDetails:
        self._check("details")
        path = files.folders.project / ".fake/notes" / f"{loop.id.partition(':')[2]}.jsonl"
        folded = files.fold(path, NotesFold())
        count = folded.state.count if folded is not None else 0
        return LoopDetails(loop_id=loop.id, iterations=tuple(Iteration(number=n + 1) for n in range(count)))

    def lessons(self, files: RunnerFiles) -> Iterable[Lesson]:
        self._check("lessons")
        path = files.folders.project / ".fake/lessons.md"
        for line, text in bullets(files.text(path)):
            id = lesson_id(self.name, text)
            yield Lesson(
                id=id, runner=self.name, text=text, kind=LessonKind.APPROACH, file=files.shown(path), line=line
            )

    def deliver(self, loop: Loop, context: str, files: RunnerFiles) -> Delivery | None:
        return None

    def _check(self, method: str) -> None:
        if self.fails == method:
            raise RuntimeError("the runner has changed its files")


class FakeRunner:
    """Writes the files of the fake runner."""

    def __init__(self, project: Path) -> None:
        self.notes = project / ".fake/notes"
        self.notes.mkdir(parents=True)
        self.lessons = project / ".fake/lessons.md"

    def write(self, text: str, session: str = "a") -> Path:
        path = self.notes / f"{session}.jsonl"
        with path.open("a") as file:
            file.write(json.dumps({"text": text}) + "\n")
        return path
