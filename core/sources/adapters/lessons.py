"""Lessons in Markdown texts, and the progress logs that agents append them to.

The forms of lessons are described in docs/adapters.md#lessons and docs/adapter-files.md#snarktank.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.polarity import find_prohibition
from core.base.prompt_text import lines_outside_contexts
from core.base.regexes import lazy_regex
from core.records.reflections import Lesson, LessonKind
from core.sources.adapters.runner_files import MAX_LABEL, MAX_TEXT, cut, local_time

BEGIN: Final = "<!-- BEGIN ralphdeck -->"
END: Final = "<!-- END ralphdeck -->"
_HEADING: Final = lazy_regex(r"(#{1,6})\s+(.*)")
_BULLET: Final = lazy_regex(r"(\s{0,40})([-*+•–◦▪]|\d{1,3}[.)])\s+(.*)")
MAX_NOTES: Final = 2000  # bullets of a log
MAX_ENTRIES: Final = 1000
_LEARNINGS: Final = lazy_regex(
    r"\W{0,4}(?:key )?learnings?(?: for [\w ]{1,40})?\W{0,3}(?:$|:\W{0,4}(.*))", re.IGNORECASE
)
_FILES: Final = lazy_regex(r"\W{0,4}files? (?:changed|modified)\W{1,4}(.*)", re.IGNORECASE)
_LABEL: Final = lazy_regex(r"\*\*[^*]{1,80}\*\*:?\s*$")
_DATE: Final = lazy_regex(r"\b(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?))?(Z|[+-]\d\d:\d\d)?")
_STORY: Final = lazy_regex(r"\b[A-Z][A-Z0-9]{0,9}-\d{1,6}\b")
_STARTED: Final = lazy_regex(r"Started:\s*(.{8,60})", re.IGNORECASE)
_DATE_FORMATS: Final = ("%a %b %d %H:%M:%S %Y", "%a %d %b %H:%M:%S %Y", "%a %b %d %I:%M:%S %p %Y")
_THREAD: Final = lazy_regex(r"ampcode\.com/threads/(T-[A-Za-z0-9-]{1,60})")


class Line(Struct, frozen=True, gc=False):
    """A Markdown line, unmarked: heading (`level` > 0), bullet, rule (`---`), other."""

    number: int
    text: str
    level: int = 0
    bullet: str = ""  # its mark, such as `-` or `1.`
    indent: int = 0
    name: str = ""  # of a field, for formats with lines such as `outcome: success`

    @property
    def is_rule(self) -> bool:
        return len(self.text) > 2 and not self.bullet and set(self.text) == {"-"}


def read_markdown(lines: Iterable[tuple[int, str]]) -> Iterator[Line]:
    """Yield the lines, of which the numbers are given."""
    for number, line in lines:
        text = line.strip()
        indent = len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip())
        if heading := _HEADING.fullmatch(text):
            yield Line(number, heading[2].strip(), len(heading[1]))
        elif bullet := _BULLET.fullmatch(line.rstrip()):
            yield Line(number, bullet[3].strip(), bullet=bullet[2], indent=indent)
        else:
            yield Line(number, text, indent=indent)


def foreign_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line in no delivered block and no context."""
    yield from lines_outside_contexts(_lines_outside_blocks(text))


def _lines_outside_blocks(text: str) -> Iterator[tuple[int, str]]:
    lines = text.split("\n")
    last = max((number for number, line in enumerate(lines, 1) if line.strip() == END), default=0)
    is_own = False
    for number, line in enumerate(lines, start=1):
        mark = line.strip()
        if mark == BEGIN:
            is_own = number < last  # a block without its end does not hide the rest of the file
        elif mark == END:
            is_own = False
        elif not is_own:
            yield number, line


def join_bullets(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines; the indented lines after a bullet are a part of its text."""
    bullet: Line | None = None
    for line in lines:
        if bullet is not None and line.indent and line.text and not (line.level or line.bullet):
            if len(bullet.text) < MAX_TEXT:
                bullet = replace(bullet, text=f"{bullet.text} {line.text}")
            continue
        if bullet is not None:
            yield bullet
        bullet = line if line.bullet else None
        if bullet is None:
            yield line
    if bullet is not None:
        yield bullet


def bullets(text: str) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each bullet of a Markdown text, unless numbered."""
    for line in read_markdown(enumerate(text.splitlines(), start=1)):
        if line.bullet and not line.bullet[0].isdigit():
            yield line.number, line.text


def lesson_id(runner: str, text: str) -> str:
    """Return a lesson's ID; equal for texts that differ only in spaces and case."""
    normalized = f"{runner}\n{' '.join(text.split()).casefold()}"
    return f"lesson:{sha256(normalized.encode('utf-8', 'replace')).hexdigest()[:16]}"


def lesson_kind(text: str) -> LessonKind:
    """Return a warning for a text that forbids something, else an approach."""
    return LessonKind.WARNING if find_prohibition(text[:MAX_TEXT]) else LessonKind.APPROACH


def make_lesson(runner: str, text: str, file: str, line: int, kind: LessonKind | None = None, **values: Any) -> Lesson:
    """Return a text's lesson; its words decide without `kind`. `values` are fields."""
    id = lesson_id(runner, text)
    return Lesson(id=id, runner=runner, text=text, kind=kind or lesson_kind(text), file=file, line=line, **values)


class Note(Struct, gc=False):
    """A bullet, with its line number."""

    line: int
    text: str


class Entry(Struct):
    """What one iteration added; `story` is the ID in its heading."""

    line: int
    title: str
    story: str = ""
    at: datetime | None = None
    thread: str = ""
    notes: list[Note] = []
    learnings: list[Note] = []
    files: list[str] = []


class ProgressLog(Struct):
    """Parts of a progress log; the agent collected `patterns` for later iterations."""

    started_at: datetime | None = None
    patterns: list[Note] = []
    entries: list[Entry] = []
    is_claimed: bool = False  # whether it contains the promise that all is done

    @property
    def newest_at(self) -> datetime | None:
        """Newest time of an entry."""
        return max((entry.at for entry in self.entries if entry.at), default=None)


@lru_cache(32)  # a log is read for loops, lessons and details
def read_progress(text: str, stories: frozenset[str] = frozenset()) -> ProgressLog:
    """Read a log; `stories` are the known IDs, which are recognized in headings."""
    reader = _Reader(stories)
    for line in read_markdown(foreign_lines(text)):
        reader.add(line)
    reader.log.is_claimed = "<promise>COMPLETE</promise>" in text
    return reader.log


def progress_lessons(runner: str, log: ProgressLog, file: str, loop_id: str) -> Iterator[Lesson]:
    """Yield lessons: the patterns, which the agent reads first, then the entries'."""
    for note in log.patterns:
        yield make_lesson(runner, note.text, file, note.line, title="Codebase Patterns", loop_id=loop_id, loaded=True)
    for entry in log.entries:
        title = entry.story or entry.title
        for note in entry.learnings:
            yield make_lesson(runner, note.text, file, note.line, title=title, at=entry.at, loop_id=loop_id)


class _Reader:
    def __init__(self, stories: frozenset[str]) -> None:
        self.log = ProgressLog()
        self._stories = stories
        self._entry: Entry | None = None
        self._notes: list[Note] | None = None  # to which bullets belong now
        self._indent = -1  # of the bullet "Learnings"; one with less indent ends the learnings
        self._count = 0

    def add(self, line: Line) -> None:
        text = line.text
        if line.level:
            self._start_section(line.number, text, is_part=line.level > 2)
        elif line.is_rule:
            self._notes, self._indent = (self._entry.notes if self._entry else None), -1
        elif line.bullet:
            self._add_bullet(line.number, line.indent, text)
        elif learnings := _LEARNINGS.fullmatch(text):
            self._start_learnings(line.number, -1, learnings[1])
        elif not self._entry and not self.log.started_at and (started := _STARTED.search(text)):
            self.log.started_at = parse_date(started[1])
        elif self._entry and (thread := _THREAD.search(text)):
            self._entry.thread = thread[1]
        elif _LABEL.fullmatch(text):
            self._notes, self._indent = (self._entry.notes if self._entry else None), -1
        elif line.indent and text and self._notes and len(self._notes[-1].text) < MAX_TEXT:
            self._notes[-1].text = cut(f"{self._notes[-1].text} {text}")

    def _start_section(self, number: int, title: str, *, is_part: bool) -> None:
        if title.casefold().startswith("codebase pattern"):
            self._entry, self._notes, self._indent = None, self.log.patterns, -1
        elif learnings := _LEARNINGS.fullmatch(title):
            self._start_learnings(number, -1, learnings[1])
        elif is_part or len(self.log.entries) >= MAX_ENTRIES:
            self._notes, self._indent = (self._entry.notes if self._entry else None), -1
        else:
            date, story = _DATE.search(title), self._story(title)
            self._entry = self._notes = None
            if date or story or title.startswith(("✓", "✗")):
                at = local_time(f"{date[1]} {date[2] or '00:00'}{date[3] or ''}") if date else None
                self._entry = Entry(number, cut(title, MAX_LABEL), story, at)
                self.log.entries.append(self._entry)
                self._notes = self._entry.notes

    def _story(self, title: str) -> str:
        known = next((word for word in title.replace(":", " ").split() if word.strip("[]()") in self._stories), "")
        found = _STORY.search(title)
        return known.strip("[]()") or (found[0] if found else "")

    def _start_learnings(self, number: int, indent: int, text: str | None) -> None:
        if self._entry is not None:
            self._notes, self._indent = self._entry.learnings, indent
            if text:
                self._append(number, text)

    def _add_bullet(self, number: int, indent: int, text: str) -> None:
        if self._entry is not None:
            if learnings := _LEARNINGS.fullmatch(text):
                self._start_learnings(number, indent, learnings[1])
                return
            if self._indent >= indent:
                self._notes, self._indent = self._entry.notes, -1
            if files := _FILES.fullmatch(text):
                self._entry.files += [name for part in files[1].split(",") if (name := part.strip(" `"))][:100]
        self._append(number, text)

    def _append(self, number: int, text: str) -> None:
        is_placeholder = text.startswith("(") and text.endswith(")")
        if self._notes is not None and self._count < MAX_NOTES and text.strip("*_` ") and not is_placeholder:
            self._count += 1
            self._notes.append(Note(number, cut(text)))


def parse_date(text: str) -> datetime | None:
    """Parse what the command `date` prints in English, or an ISO time."""
    if (time := local_time(text.strip())) is not None:
        return time
    words = text.split()
    zone = next((word for word in words if word.isalpha() and word.isupper() and word not in ("AM", "PM")), "")
    plain = " ".join(word for word in words if word != zone)
    for pattern in _DATE_FORMATS:
        try:
            time = datetime.strptime(plain, pattern).replace(tzinfo=UTC)
            return time if zone in ("UTC", "GMT") else time.replace(tzinfo=None).astimezone(UTC)
        except (ValueError, OverflowError, OSError):
            continue
    return None
