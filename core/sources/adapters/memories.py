"""Memories of Claude Code and Codex about a project; docs/adapter-files.md."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import clip
from core.base.text import plural
from core.files.file_reader import decode
from core.records.loops import Outcome
from core.records.reflections import Lesson, LessonKind
from core.records.times import parse_time
from core.sources.adapters.agent_files import project_slug
from core.sources.adapters.lessons import Line, bullets, join_bullets, lesson_kind, make_lesson, read_markdown
from core.sources.adapters.runner_files import MAX_LABEL, MAX_TEXT, cut, read_table, split_front_matter

if TYPE_CHECKING:
    from core.sources.adapters.runner_files import RunnerFiles

_MAX_BYTES: Final = 4 << 20  # of one file
_MAX_SUMMARIES: Final = 2_000
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
    """Reads Codex's memories of the project; same lessons until a file changes."""

    def __init__(self) -> None:
        self._read: tuple[Any, ...] = ()
        self._lessons: list[Lesson] = []

    def read(self, files: RunnerFiles, home: Path) -> list[Lesson]:
        """Return the lessons of all files."""
        folder = home / "memories"
        raw, handbook = folder / "raw_memories.md", folder / "MEMORY.md"
        summaries = files.names(folder / "rollout_summaries", "*.md")[-_MAX_SUMMARIES:]
        texts = {path: files.text(path, _MAX_BYTES) for path in (raw, handbook, *summaries)}
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
            yield from _codex_lessons(files, raw, source, line, section, uses)
    known: dict[str, Source] = {}
    for path in (path for path in texts if path not in (raw, handbook)):
        for source, line, section in _read_tasks(texts[path]):
            known[path.name] = source
            if source.thread not in threads and files.folders.contain(source.cwd):
                yield from _codex_lessons(files, path, source, line, section, uses)
    for source, line, section in _read_handbook(files, texts[handbook], known):
        yield from _codex_lessons(files, handbook, source, line, section, uses)


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
    """Yield bullets of raw memories or a session summary, with session and section."""
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
    """Add to a source what a reference to a summary contains; the first one counts."""
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


def _codex_lessons(
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


_INDEX: Final = "MEMORY.md"
_LOADED_LINES: Final = 200  # of the index, which the agent reads at the start of a session
_LOADED_BYTES: Final = 25 << 10
_OLD_AFTER: Final = timedelta(days=90)
_MAX_FILES: Final = 1_000
_MAX_LESSONS: Final = 400  # of one file
_MAX_HEAD: Final = 100  # lines of the frontmatter
_MAX_NAMED: Final = 5  # files in a finding
_LINK: Final = re.compile(r"\[([^\]]{0,300})\]\(([^)\s]{1,300}\.md)\)\s*(?:[—–:-]+\s*)?(.*)")
_PART: Final = re.compile(r"^\*\*(why|how to apply):?\*\*:?\s*", re.IGNORECASE)
_APPROACH: Final = re.compile(
    r"(?:always|use|run|prefer|add|set|keep|write|check|call|start|install|put|make|test|commit|ask)\b", re.IGNORECASE
)


class _Memory(Struct, frozen=True, gc=False):
    """One file: its frontmatter, and its text lines with the first one's number."""

    fields: Mapping[str, Any]
    lines: list[str]
    first: int


def read_memories(files: RunnerFiles, now: datetime | None = None) -> Iterator[Lesson]:
    """Yield the agent's memories of the project; report what a person should tidy up."""
    for folder in _folders(files):
        paths = [path for path in files.names(folder, "*.md") if path.name != _INDEX][:_MAX_FILES]
        index = folder / _INDEX
        text = files.text(index) if files.exists(index) else ""
        yield from _read_index(files, index, text, {path.name for path in paths})
        old = []
        for path in paths:
            memory = _parse(files.text(path))
            at = parse_time(memory.fields.get("modified")) or files.modified_at(path)
            if now is not None and at is not None and now - at > _OLD_AFTER:
                old.append(path.name)
            yield from _read_memory(files, path, memory, at)
        if old:
            message = f"{plural(len(old), 'memory', 'memories')} not changed for 90 days: {_named(old)}"
            files.report(folder, message, "old-memory")


def _folders(files: RunnerFiles) -> list[Path]:
    """Return the project's memory folders; a repository's working trees share one."""
    home = files.folders.private("CLAUDE_CONFIG_DIR", ".claude")
    if home is None:
        return []
    found = [home / "projects" / project_slug(root) / "memory" for root in _git_roots(files)]
    project = files.folders.project
    local = project / ".claude" / "settings.local.json"
    for settings, within in ((home / "settings.json", Path("/")), (local, project)):
        values = files.json(settings) if files.exists(settings) else None
        moved = values.get("autoMemoryDirectory") if isinstance(values, dict) else None
        folder = _absolute(files, moved) if isinstance(moved, str) else None
        # A repository can contain the second file, so it cannot name the notes of other projects.
        if folder is not None and ".." not in folder.parts and folder.is_relative_to(within):
            found.append(folder)
    return [folder for folder in dict.fromkeys(found) if files.exists(folder)]


def _absolute(files: RunnerFiles, text: str) -> Path | None:
    if text.startswith("~/") and files.folders.home is not None:
        text = f"{files.folders.home}/{text[2:]}"
    return Path(text) if text.startswith("/") and "\0" not in text else None


def _git_roots(files: RunnerFiles) -> Iterator[Path]:
    """Yield the project's working trees, Git root, and the main working tree."""
    for root in files.folders.roots:
        yield root
        top = next((one for one in (root, *root.parents) if files.exists(one / ".git")), None)
        if top is None:
            continue
        yield top
        if not (top / ".git").is_dir():
            _, _, target = files.text(top / ".git", 4_096).partition("gitdir:")
            main, found, _ = target.strip().partition("/.git/worktrees/")
            if found and main.startswith("/"):
                yield Path(main)


def _read_index(files: RunnerFiles, path: Path, text: str, names: set[str]) -> Iterator[Lesson]:
    """Yield index entries that are not about a file; report where both disagree."""
    lines = text.splitlines()
    end = _loaded_lines(lines)
    if len(lines) > end:
        message = f"has {len(lines):,} lines; Claude Code loads only the first {end:,}"
        files.report(path, message, "memory-index-too-long", f"line {end + 1}")
    linked: set[str] = set()
    missing: list[str] = []
    count = 0
    for number, entry in bullets(text):
        link = _LINK.match(entry)
        if link is not None:
            linked.add(link[2])
            if link[2] in names:
                continue
            missing.append(link[2])
            entry = " — ".join(filter(None, (link[1], link[3])))
        kind = _kind("", entry)
        if link is not None and kind is LessonKind.FACT:
            continue  # the title of a memory that is gone
        if entry and count < _MAX_LESSONS:
            count += 1
            yield _lesson(files, path, entry, number, kind, at=files.modified_at(path), loaded=number <= end)
    unlisted = sorted(names - linked) if lines else []
    if missing:
        files.report(path, f"lists files that do not exist: {_named(missing)}", "memory-index-disagrees")
    if unlisted:
        files.report(path, f"does not list {_named(unlisted)}", "memory-index-disagrees")


def _loaded_lines(lines: list[str]) -> int:
    """Return how many lines of the index the agent loads."""
    size = 0
    for number, line in enumerate(lines[:_LOADED_LINES]):
        size += len(line.encode("utf-8", "replace")) + 1
        if size > _LOADED_BYTES:
            return number
    return min(len(lines), _LOADED_LINES)


def _read_memory(files: RunnerFiles, path: Path, memory: _Memory, at: datetime | None) -> Iterator[Lesson]:
    metadata = memory.fields
    kind = _text(metadata, "type")
    origin = _text(metadata, "originSessionId")
    title = _text(metadata, "name") or path.stem
    loop_id = f"claude:{origin}" if origin else ""
    body = "\n".join(memory.lines)
    entries = list(bullets(body))
    if not metadata and len(entries) > 1:  # a list of facts, of an older version
        for number, entry in entries[:_MAX_LESSONS]:
            yield _lesson(files, path, entry, memory.first + number - 1, _kind("", entry), at=at, title=title)
        return
    parts: dict[str, list[str]] = {"": [], "why": [], "how to apply": []}
    first, part = 0, ""
    for number, line in enumerate(memory.lines, start=memory.first):
        if found := _PART.match(line.strip()):
            part = found[1].lower()
            line = line.strip()[found.end() :]
        if not part and line.strip() and not first:
            first = number
        parts[part].append(line)
    text, why, trigger = ("\n".join(lines).strip() for lines in parts.values())
    text = text or _text(metadata, "description")
    if text:
        yield _lesson(
            files,
            path,
            text,
            first or 1,
            _kind(kind, text),
            at=at,
            title=title,
            why=clip(why, MAX_TEXT),
            trigger=clip(trigger, MAX_TEXT),
            loop_id=loop_id,
        )


def _lesson(
    files: RunnerFiles, path: Path, text: str, line: int, kind: LessonKind, *, at: datetime | None, **fields: Any
) -> Lesson:
    return make_lesson("claude", clip(text, MAX_TEXT), files.shown(path), line, kind, at=at, **fields)


def _kind(type: str, text: str) -> LessonKind:
    """Return the kind by memory type; for feedback or no type, its wording decides."""
    if type not in ("", "feedback"):
        return LessonKind.FACT
    kind = lesson_kind(text)
    is_advice = bool(type) or kind is LessonKind.WARNING or _APPROACH.match(text.lstrip("*_# "))
    return kind if is_advice else LessonKind.FACT


def _parse(text: str) -> _Memory:
    lines = text.splitlines()
    head, first = split_front_matter(lines, _MAX_HEAD)
    found = decode("frontmatter.yaml", "\n".join(head).encode("utf-8", "replace")).value if first else {}
    if not isinstance(found, dict):  # it is not valid YAML, such as with a colon in a value
        pairs = (line.partition(":") for line in head)
        found = {name.strip(): value.strip().strip("\"'") for name, _, value in pairs if value.strip()}
    nested = found.get("metadata")
    return _Memory({**found, **nested} if isinstance(nested, dict) else found, lines[first:], first + 1)


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return clip(value.strip(), 200) if isinstance(value, str) else ""


def _named(names: list[str]) -> str:
    shown = ", ".join(sorted(names)[:_MAX_NAMED])
    more = len(names) - _MAX_NAMED
    return f"{shown} and {more:,} more" if more > 0 else shown
