"""Progress logs in Markdown, to which an agent appends what it did and learned (docs/adapter-files.md#snarktank)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final

from msgspec import Struct

from core.adapters.delivery import foreign_lines
from core.adapters.lessons import lesson_id
from core.adapters.values import MAX_LABEL, MAX_TEXT, cut, lesson_kind, local_time
from core.base.regexes import lazy_regex
from core.records.lessons import Lesson

MAX_NOTES: Final = 2000  # bullets of a log
MAX_ENTRIES: Final = 1000
_BULLET: Final = lazy_regex(r"(\s{0,40})(?:[-*+•–◦▪]|\d{1,3}[.)])\s+(.*)")
_HEADING: Final = lazy_regex(r"#{1,6}\s+(.*)")
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
    """The parts of a progress log; `patterns` are those that the agent collected for all later iterations."""

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
    for number, line in foreign_lines(text):
        reader.add(number, line.rstrip())
    reader.log.is_claimed = "<promise>COMPLETE</promise>" in text
    return reader.log


def progress_lessons(runner: str, log: ProgressLog, file: str, loop_id: str) -> Iterator[Lesson]:
    """Yield the lessons of a progress log: the patterns, which the agent reads first, then those of the entries."""
    for note in log.patterns:
        yield _lesson(runner, note, file, loop_id, None)
    for entry in log.entries:
        for note in entry.learnings:
            yield _lesson(runner, note, file, loop_id, entry)


def _lesson(runner: str, note: Note, file: str, loop_id: str, entry: Entry | None) -> Lesson:
    return Lesson(
        id=lesson_id(runner, note.text),
        runner=runner,
        text=note.text,
        kind=lesson_kind(note.text),
        file=file,
        line=note.line,
        title=(entry.story or entry.title) if entry else "Codebase Patterns",
        at=entry.at if entry else None,
        loop_id=loop_id,
        loaded=entry is None,
    )


class _Reader:
    def __init__(self, stories: frozenset[str]) -> None:
        self.log = ProgressLog()
        self._stories = stories
        self._entry: Entry | None = None
        self._notes: list[Note] | None = None  # to which bullets belong now
        self._indent = -1  # of the bullet "Learnings"; one with less indent ends the learnings
        self._count = 0

    def add(self, number: int, line: str) -> None:
        stripped = line.strip()
        if heading := _HEADING.fullmatch(stripped):
            self._start_section(number, heading[1].strip(), is_part=stripped.startswith("###"))
        elif set(stripped) == {"-"} and len(stripped) > 2:
            self._notes, self._indent = (self._entry.notes if self._entry else None), -1
        elif bullet := _BULLET.fullmatch(line):
            self._add_bullet(number, len(bullet[1].expandtabs(4)), bullet[2].strip())
        elif learnings := _LEARNINGS.fullmatch(stripped):
            self._start_learnings(number, -1, learnings[1])
        elif not self._entry and not self.log.started_at and (started := _STARTED.search(line)):
            self.log.started_at = parse_date(started[1])
        elif self._entry and (thread := _THREAD.search(line)):
            self._entry.thread = thread[1]
        elif _LABEL.fullmatch(stripped):
            self._notes, self._indent = (self._entry.notes if self._entry else None), -1
        elif line[:1] in (" ", "\t") and stripped and self._notes and len(self._notes[-1].text) < MAX_TEXT:
            self._notes[-1].text = cut(f"{self._notes[-1].text} {stripped}")

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
