"""Known fixes, and lessons of debug sessions (docs/task-memory.md#known-fixes)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.errors import BadInput, Refused
from core.base.text import safe_matcher, visible_line
from core.files.atomic_write import rewrite, take_theirs
from core.files.json_editor import BadJson, JsonText, Path
from core.files.yaml_editor import YamlText
from core.records.debug_sessions import PASSED, DebugSession, Failure, Lesson
from core.sources.debug_sessions import find_record, split_location
from core.sources.keys import RecordText
from core.sources.normalize import word
from core.tasks.debug_index import (
    CATEGORY,
    ERROR_TYPE,
    PATTERN,
    DebugIndex,
    FixCounts,
    fix_key,
    matching_spellings,
    newest_first,
)
from core.tasks.error_messages import Names, generalize_message, is_same_file, split_error
from core.tasks.session_files import locate_file

if TYPE_CHECKING:
    from core.base.paths import ProjectPaths


MAX_FIXES: Final = 5  # maximum number of sessions that are offered
_MAX_SAME_TYPE: Final = 2  # maximum number of sessions offered if only the error type is known, not the message
_SPECIFIC_LETTERS: Final = 12  # a message with fewer letters needs the same test or file to be the same error
_WILDCARD: Final = re.compile(r"\\\S\+?|\[[^]]*\]\+")  # wildcards and escapes of `generalize_message`
_MAX_COMPARED: Final = 200  # maximum number of sessions per error type that are compared, newest first


class KnownFix(Struct, frozen=True, kw_only=True):
    """Fix of a similar error in an earlier session, and its result."""

    session: DebugSession
    failure: Failure  # the most similar failure of the session
    cause: str = ""  # cause, category and strategy are from the analysis of that run, or ""
    category: str = ""
    strategy: str = ""
    fix: str = ""  # description of the fix, or ""
    worked: bool | None = None  # None if the result is unknown
    results: FixCounts = FixCounts()  # results of this fix in all sessions
    failed: tuple[str, ...] = ()  # other fixes that the session tried without success, newest first
    times: int = 1  # number of sessions with the same fix, of which `session` is the best match
    is_similar: bool = False  # whether the messages differ only in names, paths and numbers
    is_same_error: bool = False  # whether also names and types are equal, and the message or the place is specific
    is_same_file: bool = False  # whether the error occurred in the same file

    @property
    def has_advice(self) -> bool:
        """Whether more than the error is known."""
        return bool(self.fix or self.cause or self.strategy or self.failed)


def parse_error(error: Failure) -> Failure:
    """Return the failure with error type and location split off from its message."""
    name, message, location = split_error(error.message.strip())
    file, line = split_location(location)
    parsed = replace(error, error_type=error.error_type or name, message=message or error.message)
    return replace(parsed, file=file, line=line) if file and not error.file else parsed


def find_known_fixes(
    index: DebugIndex, errors: Sequence[Failure], file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Find fixes for errors, best first, at most one per session, each fix once."""
    found: dict[str, KnownFix] = {}
    for row in zip_longest(*(_find_fixes(index, error, file_pattern, session) for error in errors)):
        for fix in row:
            if fix is not None:
                found.setdefault(fix.session.id, fix)
    return _drop_same(found.values())[:MAX_FIXES]


def _drop_same(fixes: Iterable[KnownFix]) -> tuple[KnownFix, ...]:
    """Return the first of all equal fixes."""
    different: dict[tuple[object, ...], KnownFix] = {}
    for fix in fixes:
        different.setdefault(_fix_key(fix), fix)
    return tuple(different.values())


def _fix_key(fix: KnownFix) -> tuple[object, ...]:
    """Return what is equal for the same fix of the same error in several sessions."""
    failure = fix.failure
    error = failure.error_type, failure.message, failure.file or fix.session.file_path
    return fix_key(fix.fix) or fix.session.id, *error


def _find_fixes(
    index: DebugIndex, error: Failure, file_pattern: str, session: DebugSession | None
) -> tuple[KnownFix, ...]:
    """Return the most informative fix of each similar session, best first.

    A session is similar if its error message is, even with another error type, since agents name types differently. If
    no message is similar, a few sessions with the same error type are used, or more if the error has no usable message.
    """
    found: dict[str, KnownFix] = {}
    signature = generalize_message(error.message) if error.message else ""
    error_types = index.values(ERROR_TYPE)
    same_type = matching_spellings(filter(None, error_types), error.error_type)
    for error_type in error_types if signature else same_type:
        for known in index.find_similar(error_type, file_pattern, _MAX_COMPARED):
            if session is not None and known.id == session.id:
                continue
            fixes = [*_make_fixes(index, known, error_type, error, signature)]
            fixes += [found[known.id]] if known.id in found else []
            if usable := [fix for fix in fixes if fix.is_similar or fix.failure.error_type in same_type]:
                best = max(reversed(usable), key=_rank_in_session)
                failed: list[str] = []
                for fix in reversed(usable):
                    failed += (fix.fix if fix.worked is False else "", *fix.failed)
                others = tuple(text for text in dict.fromkeys(failed) if text and text != best.fix)
                found[known.id] = replace(best, failed=others)
    candidates = [fix for fix in found.values() if fix.is_similar] or list(found.values())
    limit = MAX_FIXES if (candidates and candidates[0].is_similar) or not signature else _MAX_SAME_TYPE
    newest = sorted(candidates, key=lambda fix: newest_first(fix.session))
    ranked = sorted(newest, key=_rank, reverse=True)
    times = Counter(map(_fix_key, ranked))
    return tuple(replace(fix, times=times[_fix_key(fix)]) for fix in _drop_same(ranked)[:limit])


def _make_fixes(
    index: DebugIndex, session: DebugSession, error_type: str, error: Failure, signature: str
) -> Iterator[KnownFix]:
    """Yield the fixes that a session made for errors of this type."""
    for run, worked in zip(session.executions, session.verdicts, strict=True):
        analysis = run.analysis
        fix = (run.fix.description or run.fix.diff_summary) if run.fix else ""
        for failure in run.failures:
            if failure.error_type == error_type:
                yield KnownFix(
                    session=session,
                    failure=failure,
                    cause=analysis.root_cause if analysis else "",
                    category=analysis.category if analysis else "",
                    strategy=analysis.strategy if analysis else "",
                    fix=fix,
                    worked=worked,
                    results=index.fix_results.of_fix(fix),
                    is_similar=bool(signature) and safe_matcher(signature).matches(failure.message),
                    is_same_error=_is_same_error(error, failure, session),
                    is_same_file=is_same_file(error.file, failure.file or session.file_path),
                )


def _is_same_error(error: Failure, failure: Failure, session: DebugSession) -> bool:
    """Return whether a failure is likely the error; numbers, paths, IDs may differ."""
    types = {one.error_type.casefold() for one in (error, failure)} - {"", "other"}
    signature = generalize_message(error.message, names=Names.ALL)
    is_alike = safe_matcher(signature).matches(failure.message) if signature else error.message == failure.message
    if len(types) > 1 or not is_alike:
        return False
    letters = sum(map(str.isalpha, _WILDCARD.sub("", signature)))
    same_test = bool(error.test_name) and error.test_name == failure.test_name
    return letters >= _SPECIFIC_LETTERS or same_test or is_same_file(error.file, failure.file or session.file_path)


def _rank_in_session(fix: KnownFix) -> tuple[bool, ...]:
    """Return the sort key in a session: worked, similar, untested fix, any fix."""
    is_untested_fix = bool(fix.fix) and fix.worked is None
    return fix.worked is True, fix.is_similar, is_untested_fix, bool(fix.fix), fix.is_same_file


def _rank(fix: KnownFix) -> tuple[bool, ...]:
    """Return the sort key: not failed, similar message, worked, same file, any fix."""
    return fix.worked is not False, fix.is_similar, fix.worked is True, fix.is_same_file, bool(fix.fix)


# Lessons

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
        rewrite(locate_file(paths, session), change, merge=take_theirs, retry_seconds=retry_seconds)
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
    """Add an entry, or update counts and missing fields of the one with its pattern."""
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
