"""Memories that Codex keeps about sessions (docs/adapter-files.md#codex-memories)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.records.loops import Outcome
from core.records.reflections import Lesson, LessonKind
from core.records.times import parse_time
from core.sources.adapters.lessons import Line, join_bullets, lesson_kind, make_lesson, read_markdown
from core.sources.adapters.runner_files import read_table
from core.sources.adapters.values import MAX_LABEL, MAX_TEXT, cut

if TYPE_CHECKING:
    from core.sources.adapters.runner_files import RunnerFiles

MAX_BYTES: Final = 4 << 20  # of one file
MAX_SUMMARIES: Final = 2_000
_THREAD: Final = re.compile(r"Thread `?([0-9A-Za-z-]{8,64})`?")
_FIELD: Final = re.compile(
    r"(thread_id|cwd|updated_at|task_outcome|[Oo]utcome|task|task_group|description|keywords|scope|applies_to"
    r"|rollout_\w{1,20}|git_\w{1,20})\s{0,4}:\s*(.*)"
)
_LABEL: Final = re.compile(r"([^:：]{3,80})[:：]\s*$")
_FOLDER: Final = re.compile(r"\bcwd=([^,;)]{1,500})")
_THREAD_ID: Final = re.compile(r"\bthread_id=([0-9A-Za-z-]{8,64})")
_UPDATED: Final = re.compile(r"\bupdated_at=([0-9T:.+Z-]{10,40})")
_TASK: Final = re.compile(r"Task (\d{1,4})\s*:?\s*(.*)")
_TASK_REFERENCE: Final = re.compile(r"\s*\[Task (\d{1,4})\]")
_OUTCOME: Final = re.compile(r"\b(success|partial|fail(?:ed|ure)?|uncertain)\b", re.IGNORECASE)
_OUTCOMES: Final = {"success": Outcome.SUCCESS, "partial": Outcome.PARTIAL, "fail": Outcome.FAILURE}
_SKIPPED: Final = re.compile(
    r"references?|key steps|keywords|rollout_summary_files|related\b.*|rollout context|task_group", re.IGNORECASE
)
_FACTS: Final = re.compile(r"user preferences?|preference signals?|user profile", re.IGNORECASE)
_FAILURES: Final = re.compile(r"failures?\b.*", re.IGNORECASE)
_SYMPTOM: Final = re.compile(
    r"symptom:\s*(.{1,1000}?)\s*cause:\s*(.{1,1000}?)\s*fix:\s*(.+)", re.IGNORECASE | re.DOTALL
)
_NAMES_ERROR: Final = re.compile(
    r"\b\w{0,80}(?:Error|Exception)\b|\b[a-z_]{1,80}\.[A-Z][a-z]|\berror:|\bexit(?:s|ed)? (?:with )?(?:code )?[1-9]"
)
_PROHIBITION: Final = re.compile(r"(?:never|avoid|do not|don['’]t)\b", re.IGNORECASE)


class Source(Struct):
    """A session that memories come from, and one of its tasks."""

    thread: str = ""
    cwd: str = ""
    at: datetime | None = None
    outcome: Outcome = Outcome.UNKNOWN
    task: str = ""


class MemoryReader:
    """Reads what Codex remembers about sessions in the project; the same lessons until a file changed."""

    def __init__(self) -> None:
        self._read: tuple[Any, ...] = ()
        self._lessons: list[Lesson] = []

    def read(self, files: RunnerFiles, home: Path) -> list[Lesson]:
        """Return the lessons of all files."""
        folder = home / "memories"
        raw, handbook = folder / "raw_memories.md", folder / "MEMORY.md"
        summaries = files.names(folder / "rollout_summaries", "*.md")[-MAX_SUMMARIES:]
        texts = {path: files.text(path, MAX_BYTES) for path in (raw, handbook, *summaries)}
        read = files.folders.roots, texts, _read_uses(files, home)
        if read != self._read:
            self._read, self._lessons = read, list(_read_memories(files, raw, handbook, texts, read[2]))
        return self._lessons


def _read_memories(
    files: RunnerFiles, raw: Path, handbook: Path, texts: Mapping[Path, str], uses: Mapping[str, int]
) -> Iterator[Lesson]:
    threads: set[str] = set()
    for source, line, section in _read_tasks(texts[raw]):
        threads.add(source.thread)
        if files.folders.contain(source.cwd):
            yield from _lessons(files, raw, source, line, section, uses)
    known: dict[str, Source] = {}
    for path in (path for path in texts if path not in (raw, handbook)):
        for source, line, section in _read_tasks(texts[path]):
            known[path.name] = source
            if source.thread not in threads and files.folders.contain(source.cwd):
                yield from _lessons(files, path, source, line, section, uses)
    for source, line, section in _read_handbook(files, texts[handbook], known):
        yield from _lessons(files, handbook, source, line, section, uses)


def _read_uses(files: RunnerFiles, home: Path) -> dict[str, int]:
    """Return how often the memories of each session were cited."""
    for path in (path for folder in (home, home / "sqlite") for path in files.names(folder, "*.sqlite")):
        if path.name.startswith(("memories_", "state_")):
            rows = read_table(files, path, "stage1_outputs", ("thread_id", "usage_count"), {"thread_id", "usage_count"})
            found = {str(row[0]): row[1] for row in rows or () if type(row[1]) is int and row[1] >= 0}
            if found:
                return found
    return {}


def _lines(text: str) -> Iterator[Line]:
    """Yield the headings, labels (level 7), fields and bullets of a text."""
    for line in join_bullets(read_markdown(enumerate(text.split("\n"), start=1))):
        if line.level or (line.bullet and not line.bullet[0].isdigit()):
            yield replace(line, text=cut(line.text))
        elif line.is_rule:
            yield replace(line, text="", name="---")
        elif field := _FIELD.match(line.text):
            yield replace(line, text=field[2].strip(), name=field[1].lower())
        elif label := _LABEL.match(line.text):
            yield replace(line, text=label[1].strip(), level=7)


def _read_tasks(text: str) -> Iterator[tuple[Source, Line, str]]:
    """Yield the bullets of raw memories or of the summary of a session, with their session and section."""
    session, source, section = Source(), Source(), ""
    is_task = False
    for line in _lines(text):
        if thread := _THREAD.fullmatch(line.text) if line.level else None:
            session = source = Source(thread=thread[1])
            section, is_task = "", False
        elif line.level:
            section = line.text
            if task := _TASK.match(line.text):
                source, is_task = replace(session, task=cut(task[2], MAX_LABEL)), True
        elif line.name:
            source = _add_field(source, line, is_task=is_task)
            session = session if is_task else source
        elif line.text:
            yield source, line, section


def _add_field(source: Source, line: Line, *, is_task: bool) -> Source:
    """Return a source with the value of a field, such as `cwd: /home/ana/shop`."""
    match line.name:
        case "thread_id":
            return replace(source, thread=line.text.strip("`")[:64])
        case "cwd":
            return replace(source, cwd=line.text[:MAX_TEXT])
        case "updated_at":
            return replace(source, at=parse_time(line.text))
        case "task_outcome" | "outcome":
            return replace(source, outcome=parse_outcome(line.text))
        case "task" | "description" if not is_task:
            return replace(source, task=cut(line.text, MAX_LABEL))
        case _:
            return source


def _read_handbook(files: RunnerFiles, text: str, known: Mapping[str, Source]) -> Iterator[tuple[Source, Line, str]]:
    """Yield the bullets of the blocks of `MEMORY.md` that are about the project.

    A block is a `# Task Group`; in older versions, front matter with `rollout_summary_files` and the text below it.
    """
    block: list[Line] = []
    is_grouped = False
    for line in _lines(text):
        is_group = line.level == 1 and line.text.lower().startswith("task group")
        if block and (is_group or (line.name == "rollout_summary_files" and not is_grouped)):
            yield from _read_block(files, block, known)
            block = []
        is_grouped = is_grouped or is_group
        block.append(line)
    yield from _read_block(files, block, known)


def _read_block(
    files: RunnerFiles, block: list[Line], known: Mapping[str, Source]
) -> Iterator[tuple[Source, Line, str]]:
    folders: list[str] = []
    tasks: dict[str, Source] = {}  # by number; "" for the whole block
    number = section = ""
    found: list[tuple[Line, str, str]] = []
    for line in block:
        folders += _FOLDER.findall(line.text) if line.name == "applies_to" else ()
        if line.name in ("rollout_summary_files", "---"):
            section = line.name
        if line.name in ("description", "task_group") or line.level == 1:
            tasks.setdefault("", Source(task=cut(line.text.removeprefix("Task Group:"), MAX_LABEL)))
        if line.level:
            section = line.text
            if task := _TASK.match(line.text):
                number = task[1]
                tasks[number] = Source(task=cut(task[2], MAX_LABEL), outcome=parse_outcome(task[2]))
            elif line.level <= 2:
                number = ""
        elif not line.name and line.text:
            if section == "rollout_summary_files":
                source = _read_reference(line.text, tasks.setdefault(number, Source()), known)
                tasks[number] = source
                folders.append(source.cwd)
            found.append((line, number, section))
    if not any(folder and files.folders.contain(folder.strip()) for folder in folders):
        return
    for line, number, section in found:
        named = _TASK_REFERENCE.search(line.text)
        only = next(iter(tasks.values())) if len(tasks) == 1 else Source()
        yield tasks.get(named[1] if named else number) or tasks.get("", only), line, section


def _read_reference(text: str, source: Source, known: Mapping[str, Source]) -> Source:
    """Return the source with what a reference to the summary of a session says; the first one decides."""
    name = text.partition("(")[0].strip().rpartition("/")[2]
    summary = known.get(name, Source())
    folder, thread, updated = (pattern.search(text) for pattern in (_FOLDER, _THREAD_ID, _UPDATED))
    outcome = parse_outcome(text.partition("(")[2])
    return Source(
        thread=source.thread or (thread[1] if thread else summary.thread),
        cwd=folder[1] if folder else summary.cwd,
        at=source.at or (parse_time(updated[1]) if updated else summary.at),
        outcome=source.outcome if source.outcome is not Outcome.UNKNOWN else outcome,
        task=source.task or summary.task,
    )


def parse_outcome(text: str) -> Outcome:
    """Return the last outcome that a text names."""
    found = _OUTCOME.findall(text)
    return _OUTCOMES.get(re.sub("(ed|ure)$", "", found[-1].lower()), Outcome.UNKNOWN) if found else Outcome.UNKNOWN


def _lessons(
    files: RunnerFiles, path: Path, source: Source, line: Line, section: str, uses: Mapping[str, int]
) -> Iterator[Lesson]:
    """Yield the lesson of a bullet, unless its section has none."""
    text = _TASK_REFERENCE.sub("", line.text).strip()
    if not text or _SKIPPED.fullmatch(section):
        return
    trigger = why = ""
    kind = LessonKind.WARNING if _PROHIBITION.match(text) else LessonKind.APPROACH
    if _FACTS.match(section):
        kind = LessonKind.FACT
    if _FAILURES.fullmatch(section):
        if parts := _SYMPTOM.match(text):
            trigger, why, text = parts.groups()
        elif len(steps := [step.strip() for step in text.split("->")]) > 1:
            trigger, why, text = steps[0], " -> ".join(steps[1:-1]), steps[-1]
        kind = LessonKind.FIX if _NAMES_ERROR.search(trigger) else lesson_kind(text)
    yield make_lesson(
        "codex",
        text,
        files.shown(path),
        line.number,
        kind,
        title=source.task,
        trigger=trigger,
        why=why,
        at=source.at,
        loop_id=f"codex:{source.thread}" if source.thread else "",
        outcome=source.outcome,
        uses=uses.get(source.thread),
    )
