"""(4) hooks on_success, update_fix_effectiveness and extract_learnings: what a session teaches, and into its file.

Only `learnings` of the session is ever changed, every other byte stays as it is, in JSON and in YAML.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Refused
from core.base.text import visible_line
from core.config.paths import ProjectPaths
from core.debug_memory.index import CATEGORY, PATTERN, DebugIndex
from core.records.debug_sessions import PASSED, DebugSession, Lesson
from core.sources.debug_sessions import find_record
from core.sources.key_style import RecordText
from core.sources.normalize import word
from core.storage.atomic_write import rewrite, take_theirs
from core.storage.json_editor import BadJson, JsonText, Path
from core.storage.yaml_editor import YamlText

_LEARNINGS: Final = "learnings"
_IDENTIFIED: Final = "patterns_identified"


class LessonUpdate(Struct, frozen=True, kw_only=True):
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
    against. Frequency is over all sessions that identified the pattern, this one included; effectiveness is over all
    sessions that had the problem, those that failed included (docs/scoring.md#known-fixes).

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
    pattern = index.fix_results.usual_pattern(category)
    if not pattern:
        return category, ""
    recorded = (lesson for known in index.find(CATEGORY, category) for lesson in known.lessons)
    templates = (one.fix_template for one in recorded if one.category == category and one.pattern == pattern)
    return pattern, next(filter(None, templates), "")


def _measured(lesson: Lesson, session: DebugSession, index: DebugIndex) -> Lesson:
    others = [known for known in index.find(PATTERN, lesson.pattern) if known.id != session.id]
    return replace(
        lesson,
        frequency=max(len(others) + 1, lesson.frequency or 1),
        effectiveness=index.fix_results.effectiveness(lesson),
    )


def write_lessons(
    paths: ProjectPaths,
    session: DebugSession,
    found: Sequence[Lesson],
    retry_seconds: Sequence[float],
    *,
    dry_run: bool = False,
) -> LessonUpdate:
    """Put lessons into `learnings.patterns_identified` of a session's file, merged by the name of the pattern.

    Args:
        retry_seconds: Pauses before a file is read again that is most likely half written.
        dry_run: Only see whether that can be done, and whether it changes the file.

    Raises:
        Conflict: The file cannot be understood, or others keep changing it.
        Unwritable: The disk or a permission forbids it.
    """
    if not found:
        return LessonUpdate(lessons=(), written=not dry_run)
    try:
        path = paths.inside(session.file)
    except BadInput as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))
    if path != paths.aiwg.resolve().joinpath(*session.file.split("/")[1:]):
        problem = f"{visible_line(session.file, 160)} lies behind a link; it is left as it is"
        return LessonUpdate(lessons=tuple(found), problem=problem)

    changed = False

    def change(data: bytes | None) -> bytes | None:
        nonlocal changed
        if data is None:
            raise Refused(f"{visible_line(session.file, 160)} is gone")
        after = _in_yaml(data, session, found) if _is_yaml(session.file) else _in_json(data, session, found)
        changed |= after != data
        return data if dry_run else after

    try:
        rewrite(path, change, merge=take_theirs, retry_seconds=retry_seconds)
    except Refused as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))
    return LessonUpdate(lessons=tuple(found), written=not dry_run, changed=changed)


def _is_yaml(file: str) -> bool:
    return file.endswith((".yaml", ".yml"))


def _in_json(data: bytes, session: DebugSession, taught: Sequence[Lesson]) -> bytes:
    document = RecordText(data)
    _put(document, session, taught)
    return document.encode()


def _in_yaml(data: bytes, session: DebugSession, taught: Sequence[Lesson]) -> bytes:
    """The file with the lessons in the learnings of its session, all else as it is.

    Raises:
        BadJson: It is not YAML that is read, most likely half written.
        Refused: Its learnings have another shape, or the edit would be read as something else.
    """
    document = YamlText(data)
    before = find_record(session.file, document.value, session.id)
    try:
        _put(document, session, taught)
    except BadJson:
        raise Refused(f"nothing can be added to {visible_line(session.file, 160)}; it is left as it is") from None
    after = find_record(session.file, document.value, session.id)
    if (
        before is None
        or after is None
        or _without(document.value, after[0]) != _without(YamlText(data).value, before[0])
    ):
        raise Refused(f"nothing can be added to {visible_line(session.file, 160)}; it is left as it is")
    return document.encode()


def _without(value: Any, place: Path) -> Any:
    """A document without the lessons of the session at `place`."""
    if place:
        step, rest = place[0], place[1:]
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, _without(item, rest) if key == step else item) for key, item in items]
    learnings = value.get(_LEARNINGS) or {}
    kept = {key: item for key, item in learnings.items() if key != _IDENTIFIED} if isinstance(learnings, dict) else {}
    return {key: item for key, item in value.items() if key != _LEARNINGS} | {_LEARNINGS: kept}


def _put(document: JsonText | YamlText, session: DebugSession, taught: Sequence[Lesson]) -> None:
    """Bring the lessons of the session's record up to date.

    Raises:
        Refused: The record is gone, or its learnings are no object with a list.
    """
    found = find_record(session.file, document.value, session.id)
    if found is None:
        raise Refused(f"debug session {visible_line(session.id, 80)} is no longer in its file")
    place, record = found
    learnings = record.get(_LEARNINGS)
    if not learnings and not isinstance(learnings, dict):
        document.set(place, _LEARNINGS, {_IDENTIFIED: [_entry(lesson) for lesson in taught]})
        return
    listed = learnings.get(_IDENTIFIED) if isinstance(learnings, dict) else None
    if isinstance(learnings, dict) and listed is None:
        document.set((*place, _LEARNINGS), _IDENTIFIED, [_entry(lesson) for lesson in taught])
        return
    if not isinstance(listed, list):
        raise Refused(f"the learnings in {visible_line(session.file, 160)} are of another shape; they are left alone")
    for lesson in taught:
        _merge(document, (*place, _LEARNINGS, _IDENTIFIED), listed, lesson)


def _merge(document: JsonText | YamlText, place: Path, listed: list[Any], lesson: Lesson) -> None:
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
