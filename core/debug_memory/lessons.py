"""(4) hooks on_success, update_fix_effectiveness and extract_learnings: what a session teaches, and into its file.

Only `learnings` of the session is ever changed, and only in a JSON file; every other byte stays as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.debug_memory.index import CATEGORY, PATTERN, DebugIndex
from core.debug_memory.reports import held
from core.errors import BadInput, Refused
from core.paths import ProjectPaths
from core.records.debug_sessions import PASSED, DebugSession, Lesson
from core.sources.dialects import word
from core.sources.json_text import JsonText, Path
from core.sources.writing import rewrite, take_theirs
from core.text import visible_line

_LEARNINGS: Final = "learnings"
_IDENTIFIED: Final = "patterns_identified"


class Learned(Struct, frozen=True, kw_only=True):
    """What became of a session's lessons.

    Attributes:
        lessons: All that the session teaches, those that its file has already first.
        written: Whether they are in its file.
        changed: Whether the file had to be changed for that.
        problem: Why they are not in it, "" if they are.
    """

    lessons: tuple[Lesson, ...]
    written: bool = False
    changed: bool = False
    problem: str = ""


def check_success(session: DebugSession) -> None:
    """Raises `Refused` for a session that did not succeed: its status says so, else its last run fails."""
    shown = visible_line(session.id, 80)
    if session.status == PASSED:
        return
    if not session.is_open:
        raise Refused(f"debug session {shown} is {session.status}; there is no success to learn from")
    last = session.executions[-1].results if session.executions else None
    if last is not None and last.green is False:
        raise Refused(f"the last run of debug session {shown} fails; there is no success to learn from")


def lessons(session: DebugSession, index: DebugIndex) -> tuple[Lesson, ...]:
    """What a session teaches: the patterns that it names itself, and one for each other root cause that a fix held
    against. Frequency and effectiveness are over all sessions that identified the pattern, this one included.

    A root cause that has no name here gets the one that most sessions gave it, else that of its category.
    """
    named = {lesson.pattern: lesson for lesson in session.lessons}
    known = {lesson.category for lesson in session.lessons}
    for run, verdict in zip(session.executions, session.verdicts, strict=True):
        category = run.analysis.category if run.analysis is not None else ""
        if verdict and category and category not in known and run.fix is not None and run.analysis is not None:
            known.add(category)
            pattern, template = _usual(index, category)
            text = template or run.fix.description or run.analysis.strategy
            named.setdefault(pattern, Lesson(pattern=pattern, category=category, fix_template=text))
    return tuple(_measured(lesson, session, index) for lesson in named.values())


def _usual(index: DebugIndex, category: str) -> tuple[str, str]:
    """The name that most sessions gave to a root cause, and its newest template."""
    told = [
        lesson for known in index.find(CATEGORY, category) for lesson in known.lessons if lesson.category == category
    ]
    if not told:
        return category, ""
    counts = Counter(lesson.pattern for lesson in told)
    pattern = min(counts, key=lambda name: (-counts[name], name))
    return pattern, next((one.fix_template for one in told if one.pattern == pattern and one.fix_template), "")


def _measured(lesson: Lesson, session: DebugSession, index: DebugIndex) -> Lesson:
    others = [known for known in index.find(PATTERN, lesson.pattern) if known.id != session.id]
    rate = held([session, *others], lesson.category).rate
    return replace(
        lesson,
        frequency=max(len(others) + 1, lesson.frequency or 1),
        effectiveness=lesson.effectiveness if rate is None else rate,
    )


def takes_lessons(file: str) -> bool:
    """Whether lessons are written into such a file: it is JSON."""
    return file.endswith((".json", ".jsonl"))


def write_lessons(
    paths: ProjectPaths, session: DebugSession, found: Sequence[Lesson], retry_seconds: Sequence[float]
) -> Learned:
    """Put lessons into `learnings.patterns_identified` of a session's file, merged by the name of the pattern.

    Raises:
        Conflict: The file cannot be understood, or others keep changing it.
        Unwritable: The disk or a permission forbids it.
    """
    if not takes_lessons(session.file):
        return Learned(lessons=tuple(found), problem=f"{visible_line(session.file, 160)} is YAML; it is left as it is")
    try:
        path = paths.inside(session.file)
    except BadInput as error:
        return Learned(lessons=tuple(found), problem=str(error))
    if path != paths.aiwg.resolve().joinpath(*session.file.split("/")[1:]):
        problem = f"{visible_line(session.file, 160)} lies behind a link; it is left as it is"
        return Learned(lessons=tuple(found), problem=problem)

    changed = False

    def change(data: bytes | None) -> bytes | None:
        nonlocal changed
        if data is None:
            raise Refused(f"{visible_line(session.file, 160)} is gone")
        document = JsonText(data)
        _put(document, session, found)
        after = document.encode()
        changed |= after != data
        return after

    try:
        rewrite(path, change, merge=take_theirs, retry_seconds=retry_seconds)
    except Refused as error:
        return Learned(lessons=tuple(found), problem=str(error))
    return Learned(lessons=tuple(found), written=True, changed=changed)


def _put(document: JsonText, session: DebugSession, found: Sequence[Lesson]) -> None:
    """Bring the lessons of the session's record up to date.

    Raises:
        Refused: The record is gone, or its learnings are no object with a list.
    """
    place = _find(document, session.id)
    record = document.value
    for step in place:
        record = record[step]
    learnings = record.get(_LEARNINGS)
    if not learnings and not isinstance(learnings, dict):
        document.set(place, _LEARNINGS, {_IDENTIFIED: [_entry(lesson) for lesson in found]})
        return
    listed = learnings.get(_IDENTIFIED) if isinstance(learnings, dict) else None
    if isinstance(learnings, dict) and listed is None:
        document.set((*place, _LEARNINGS), _IDENTIFIED, [_entry(lesson) for lesson in found])
        return
    if not isinstance(listed, list):
        raise Refused(f"the learnings in {visible_line(session.file, 160)} are of another shape; they are left alone")
    for lesson in found:
        _merge(document, (*place, _LEARNINGS, _IDENTIFIED), listed, lesson)


def _find(document: JsonText, session_id: str) -> Path:
    value = document.value
    if isinstance(value, dict) and _is(value, session_id):
        return ()
    for place in reversed(range(len(value) if isinstance(value, list) else 0)):
        if _is(value[place], session_id):
            return (place,)
    raise Refused(f"debug session {visible_line(session_id, 80)} is no longer in its file")


def _is(record: Any, session_id: str) -> bool:
    return isinstance(record, dict) and str(record.get("session_id", "")).strip() == session_id


def _merge(document: JsonText, place: Path, listed: list[Any], lesson: Lesson) -> None:
    for number, entry in enumerate(listed):
        if isinstance(entry, dict) and entry.get("pattern") == lesson.pattern:
            for key, value in _entry(lesson).items():
                counted = key in ("frequency", "effectiveness")
                if (counted and entry.get(key) != value) or (not counted and not entry.get(key)):
                    document.set((*place, number), key, value)
            return
    document.append(place, _entry(lesson))


def _entry(lesson: Lesson) -> dict[str, Any]:
    """A lesson as (4) `patterns_identified` has it."""
    told = {
        "pattern": lesson.pattern,
        "category": word(lesson.category),
        "frequency": lesson.frequency,
        "fix_template": lesson.fix_template,
        "effectiveness": lesson.effectiveness,
    }
    return {key: value for key, value in told.items() if value not in (None, "")}
