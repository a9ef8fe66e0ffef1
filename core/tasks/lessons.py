"""Collect and write the lessons of a session (docs/debug-memory.md#lessons)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Refused
from core.base.text import visible_line
from core.files.atomic_write import rewrite, take_theirs
from core.files.json_editor import BadJson, JsonText, Path
from core.files.yaml_editor import YamlText
from core.records.debug_sessions import PASSED, DebugSession, Lesson
from core.sources.debug_sessions import find_record
from core.sources.keys import RecordText
from core.sources.normalize import word
from core.tasks.debug_index import CATEGORY, PATTERN, DebugIndex, fix_key

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths

_LEARNINGS: Final = "learnings"
_IDENTIFIED: Final = "patterns_identified"


class LessonUpdate(Struct, frozen=True, kw_only=True):
    """Result of `write_lessons`: the lessons, and whether the file contains them."""

    lessons: tuple[Lesson, ...]  # all lessons of the session, previously recorded ones first
    written: bool = False
    changed: bool = False  # whether the file changed or, in a dry run, would change
    problem: str = ""  # why the lessons could not be written, or ""


def check_success(session: DebugSession) -> None:
    """Raise `Refused` if the session failed, or is open and its last run failed."""
    shown = visible_line(session.id, 80)
    if session.status == PASSED:
        return
    if not session.is_open:
        raise Refused(f"debug session {shown} is {session.status}; there is no success to learn from")
    last = session.executions[-1].results if session.executions else None
    if last is not None and last.green is False:
        raise Refused(f"the last run of debug session {shown} failed; there is no success to learn from")


def collect_lessons(session: DebugSession, index: DebugIndex) -> tuple[Lesson, ...]:
    """Return the recorded lessons, and one for each other fixed root cause.

    Frequency is the number of sessions that identified the pattern, including this one. Effectiveness includes all
    sessions with the problem, also failed ones (docs/scoring.md#known-fixes). The pattern of a new lesson is the usual
    one of its root cause category; if there is none, the category itself, with the words of the session's own fix.
    """
    by_pattern = {lesson.pattern: lesson for lesson in session.lessons}
    categories = {lesson.category for lesson in session.lessons}
    for run, worked in zip(session.executions, session.verdicts, strict=True):
        category = run.analysis.category if run.analysis is not None else ""
        if worked and category and category not in categories and run.fix is not None and run.analysis is not None:
            categories.add(category)
            pattern, template = _usual_template(index, category)
            text = template or run.fix.description or run.analysis.strategy
            by_pattern.setdefault(pattern, Lesson(pattern=pattern, category=category, fix_template=text))
    return tuple(_with_counts(lesson, session, index) for lesson in by_pattern.values())


def _usual_template(index: DebugIndex, category: str) -> tuple[str, str]:
    pattern = index.fix_results.usual_pattern(category)
    if pattern in ("", category):
        return category, ""
    recorded = (lesson for known in index.find(CATEGORY, category) for lesson in known.lessons)
    templates = (one.fix_template for one in recorded if one.category == category and one.pattern == pattern)
    return pattern, next(filter(None, templates), "")


def _with_counts(lesson: Lesson, session: DebugSession, index: DebugIndex) -> Lesson:
    others = [
        known
        for known in index.find(PATTERN, lesson.pattern)
        if known.id != session.id
        and (lesson.is_named or any(fix_key(one.fix_template) == fix_key(lesson.fix_template) for one in known.lessons))
    ]
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
    """Write lessons to the session's file, merged by pattern; change nothing else.

    `retry_seconds` are the pauses between attempts to read a file that cannot be parsed, since another process may be
    writing it. `dry_run` only checks whether the file can be and would be changed. Raises Conflict if the file cannot
    be parsed or other processes keep changing it.
    """
    if not found:
        return LessonUpdate(lessons=(), written=not dry_run)
    shown, changed = visible_line(session.file, 160), False

    def change(data: bytes | None) -> bytes | None:
        nonlocal changed
        if data is None:
            raise Refused(f"{shown} no longer exists")
        after = _edit(data, session, found)
        changed |= after != data
        return data if dry_run else after

    try:
        path = paths.inside(session.file)
        if path != paths.aiwg.resolve().joinpath(*session.file.split("/")[1:]):
            raise Refused(f"{shown} is reached through a link; it was not changed")
        rewrite(path, change, merge=take_theirs, retry_seconds=retry_seconds)
    except (BadInput, Refused) as error:
        return LessonUpdate(lessons=tuple(found), problem=str(error))
    return LessonUpdate(lessons=tuple(found), written=not dry_run, changed=changed)


def _edit(data: bytes, session: DebugSession, found: Sequence[Lesson]) -> bytes:
    """Return the content of the file with the lessons; nothing else differs.

    Raises BadJson if it cannot be parsed, most likely because it is being written, and Refused if its learnings have an
    unknown structure or if the edit of a YAML file would change other data.
    """
    if not session.file.endswith((".yaml", ".yml")):
        json_document = RecordText(data)
        _set_lessons(json_document, session, found)
        return json_document.encode()
    document = YamlText(data)
    before = find_record(session.file, document.value, session.id)
    refused = Refused(f"lessons cannot be added to {visible_line(session.file, 160)}; it was not changed")
    try:
        _set_lessons(document, session, found)
    except BadJson:
        raise refused from None
    after = find_record(session.file, document.value, session.id)
    if before is None or after is None:
        raise refused
    if _without_lessons(document.value, after[0]) != _without_lessons(YamlText(data).value, before[0]):
        raise refused
    return document.encode()


def _without_lessons(value: Any, place: Path) -> Any:
    if place:
        step, rest = place[0], place[1:]
        items = value.items() if isinstance(value, dict) else enumerate(value)
        return [(key, _without_lessons(item, rest) if key == step else item) for key, item in items]
    learnings = value.get(_LEARNINGS) or {}
    others = {key: item for key, item in learnings.items() if key != _IDENTIFIED} if isinstance(learnings, dict) else {}
    return {key: item for key, item in value.items() if key != _LEARNINGS} | {_LEARNINGS: others}


def _set_lessons(document: JsonText | YamlText, session: DebugSession, found: Sequence[Lesson]) -> None:
    """Add lessons to the session's record; raise `Refused` if it is malformed."""
    located = find_record(session.file, document.value, session.id)
    if located is None:
        raise Refused(f"debug session {visible_line(session.id, 80)} is no longer in its file")
    place, record = located
    entries = [_entry(lesson) for lesson in found]
    learnings = record.get(_LEARNINGS)
    if not learnings and not isinstance(learnings, dict):
        document.set(place, _LEARNINGS, {_IDENTIFIED: entries})
        return
    listed = learnings.get(_IDENTIFIED) if isinstance(learnings, dict) else ()
    place = (*place, _LEARNINGS)
    if listed is None:
        document.set(place, _IDENTIFIED, entries)
    elif not isinstance(listed, list):
        raise Refused(
            f"the learnings in {visible_line(session.file, 160)} have an unknown structure and were not changed"
        )
    else:
        for entry in entries:
            _merge_entry(document, (*place, _IDENTIFIED), listed, entry)


def _merge_entry(document: JsonText | YamlText, place: Path, listed: list[Any], entry: Mapping[str, Any]) -> None:
    """Add an entry, or update counts and missing fields of the entry with its pattern."""
    for number, present in enumerate(listed):
        if isinstance(present, dict) and present.get("pattern") == entry["pattern"]:
            for key, value in entry.items():
                is_count = key in ("frequency", "effectiveness")
                if (is_count and present.get(key) != value) or (not is_count and not present.get(key)):
                    document.set((*place, number), key, value)
            return
    document.append(place, entry)


def _entry(lesson: Lesson) -> dict[str, Any]:
    entry = {
        "pattern": lesson.pattern,
        "category": word(lesson.category),
        "frequency": lesson.frequency,
        "fix_template": lesson.fix_template,
        "effectiveness": lesson.effectiveness,
    }
    return {key: value for key, value in entry.items() if value not in (None, "")}
