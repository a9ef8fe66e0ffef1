"""Claude Code's auto memory: notes that the agent keeps about a project (docs/adapter-files.md#claude-memory)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from core.base.text import plural
from core.files.file_reader import decode
from core.records.reflections import Lesson, LessonKind
from core.records.times import parse_time
from core.sources.adapters.agent_files import project_slug
from core.sources.adapters.lessons import bullets, lesson_kind, make_lesson
from core.sources.adapters.values import MAX_TEXT, clip, split_front_matter

if TYPE_CHECKING:
    from core.sources.adapters.runner_files import RunnerFiles

INDEX: Final = "MEMORY.md"
LOADED_LINES: Final = 200  # of the index, which the agent reads at the start of a session
LOADED_BYTES: Final = 25 << 10
OLD_AFTER: Final = timedelta(days=90)
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
    """One file: its frontmatter, and the lines of its text with the number of the first one."""

    fields: Mapping[str, Any]
    lines: list[str]
    first: int


def read_memories(files: RunnerFiles, now: datetime | None = None) -> Iterator[Lesson]:
    """Yield what the agent remembers about the project; reports what a person should tidy up."""
    for folder in _folders(files):
        paths = [path for path in files.names(folder, "*.md") if path.name != INDEX][:_MAX_FILES]
        index = folder / INDEX
        text = files.text(index) if files.exists(index) else ""
        yield from _read_index(files, index, text, {path.name for path in paths})
        old = []
        for path in paths:
            memory = _parse(files.text(path))
            at = parse_time(memory.fields.get("modified")) or files.modified_at(path)
            if now is not None and at is not None and now - at > OLD_AFTER:
                old.append(path.name)
            yield from _read_memory(files, path, memory, at)
        if old:
            message = f"{plural(len(old), 'memory', 'memories')} not changed for 90 days: {_named(old)}"
            files.report(folder, message, "old-memory")


def _folders(files: RunnerFiles) -> list[Path]:
    """Return the folders of the project's memories; all working trees of a repository share one."""
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
    """Yield the working trees of the project, its Git root, and the main working tree of the repository."""
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
    """Yield the entries of the index that are not about a file, and report where both disagree."""
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
    for number, line in enumerate(lines[:LOADED_LINES]):
        size += len(line.encode("utf-8", "replace")) + 1
        if size > LOADED_BYTES:
            return number
    return min(len(lines), LOADED_LINES)


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
    """Return the kind by the type of the memory; its wording decides for feedback and for a memory without a type."""
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
