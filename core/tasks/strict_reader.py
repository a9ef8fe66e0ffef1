"""Read the files of a task before writing; a malformed file raises an error."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.base.errors import Conflict
from core.records.episodes import Attempt, Task
from core.records.loops import Outcome
from core.sources.episodes import Actions, join_attempts, parse_attempts, parse_tasks
from core.tasks.json_files import Shapes, check_editable, read_last_lines, read_object

if TYPE_CHECKING:
    from core.files.decoded import Line
    from core.records.reflections import Reflection
    from core.tasks.folders import AttemptFolder, TaskFolder
    from core.tasks.log_summary import LogSummary

TRAJECTORY_SHAPES: Final[Shapes] = {("attempts",): list}  # expected types in `trajectory.json`
ROOM: Final = 1 << 16  # bytes that a step may add to each file besides the texts of the caller
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class StrictReader:
    """Reads the files of a task at each call; raises `Conflict` for a malformed file.

    The list of attempts is cached, so a new reader is needed after an attempt was started.
    """

    def __init__(self, folder: TaskFolder) -> None:
        self._folder = folder
        self._root = folder.project.aiwg

    def check(self, *places: AttemptFolder, room: int = ROOM) -> None:
        """Check that a step can write its files, including those of attempts in `places`."""
        folder = self._folder
        check_editable(folder.trajectory, self._root, TRAJECTORY_SHAPES, room=room)
        of_attempts = (path for place in places for path in (place.attempt, place.outcome))
        for path in (folder.metadata, folder.summary, *of_attempts):
            check_editable(path, self._root, room=room)
        if folder.reflections.is_symlink() or not (folder.reflections.is_file() or not folder.reflections.exists()):
            raise Conflict(f"{folder.reflections} is not a regular file; nothing was changed. Move it away")

    def task(self) -> Task:
        value = read_object(self._folder.metadata, self._root) or {}
        return parse_tasks(self._folder.project.relative(self._folder.metadata), value)[0][0]

    def attempts(self) -> dict[int, Attempt]:
        """Return all attempts by number; for ended ones, only the trajectory is read."""
        found = self._read_trajectory()
        ended = {attempt.number for attempt in found if attempt.outcome is not Outcome.UNKNOWN}
        for number, place in self._places.items():
            if number not in ended:
                found += self._read_folder(place)
        joined = {attempt.number: attempt for attempt in join_attempts(found).values()}
        return dict(sorted(joined.items()))

    def _read_trajectory(self) -> list[Attempt]:
        return self._read(self._folder.trajectory, read_object(self._folder.trajectory, self._root) or {})

    def attempt(self, number: int) -> Attempt:
        """Return one attempt, including the data in its own files."""
        trajectory = read_object(self._folder.trajectory, self._root) or {}
        entries = trajectory.get("attempts")
        mine = [one for one in entries if is_entry(one, number)] if isinstance(entries, list) else []
        found = self._read(self._folder.trajectory, {"attempts": mine})
        if place := self._places.get(number):
            found += self._read_folder(place)
        joined = join_attempts(found)
        unknown = Attempt(task_id=self._folder.id, number=number)
        return joined.get(unknown.id, unknown)

    def own(self, place: AttemptFolder) -> Attempt:
        [attempt] = join_attempts(self._read_folder(place)).values()
        return attempt

    def trajectory(self) -> dict[int, Attempt]:
        """Return the attempts by number that have an outcome in the trajectory."""
        found = self._read_trajectory()
        return {attempt.number: attempt for attempt in found if attempt.outcome is not Outcome.UNKNOWN}

    def log(self, place: AttemptFolder) -> LogSummary:
        """Summarize the newest actions in the log of an attempt."""
        from core.tasks.log_summary import summarize_newest  # not needed to append actions

        return summarize_newest(Actions(self._folder.project, self._folder.project.relative(place.actions)))

    def reflections(self) -> tuple[Reflection, ...]:
        """Return the reflections in file order, without drafts that were replaced."""
        from core.sources.reflections import read_reflections

        lines = self.reflection_lines()
        return read_reflections(self._folder.project.relative(self._folder.reflections), lines, _LONG_AGO)[0]

    def reflection_lines(self) -> list[Line]:
        """Return the lines of `reflections.jsonl`; of a very long file, the last ones."""
        return read_last_lines(self._folder.reflections, self._root)

    @cached_property
    def _places(self) -> dict[int, AttemptFolder]:
        return self._folder.attempts()

    def _read_folder(self, place: AttemptFolder) -> list[Attempt]:
        values = {path: read_object(path, self._root) for path in (place.attempt, place.outcome)}
        found = [part for path, value in values.items() if value is not None for part in self._read(path, value)]
        return found or [Attempt(task_id=self._folder.id, number=place.number)]

    def _read(self, path: Path, value: Mapping[str, Any]) -> list[Attempt]:
        return list(parse_attempts(self._folder.project.relative(path), value)[0])


def is_entry(value: Any, number: int) -> bool:
    """Whether a value is the trajectory entry of attempt `number`."""
    return isinstance(value, dict) and value.get("attempt_id", value.get("attempt", value.get("id"))) == number
