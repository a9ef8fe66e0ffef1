"""Files that agents load, and their instructions; docs/instructions.md#files.

An instruction is a statement: a list item or a sentence, with its lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from os.path import normpath
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from core.base.masking import mask_secrets
from core.files.managed_text import find_own_lines
from core.records.instructions import Instruction, InstructionFile, Loading
from core.sources.adapters.runner_files import split_front_matter

if TYPE_CHECKING:
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

MAX_BYTES: Final = 1 << 18  # most bytes of one file that are compared
_MAX_READ: Final = 1 << 24  # most bytes of one file that is read at all
MAX_FILES: Final = 400  # files that are read
_MAX_FOLDERS: Final = 1_000  # subfolders in which files of the same name are looked for
_MAX_DEPTH: Final = 4  # of these subfolders
_MAX_IMPORTS: Final = 5  # files that import each other
_MAX_HEAD: Final = 60  # lines of a head with fields
_MAX_SCOPE: Final = 20  # globs of one file
_NOT_IN_SLUG: Final = re.compile("[^A-Za-z0-9]")
_IMPORT: Final = re.compile(r"(?:^|\s)@((?:\./|\.\./)*[\w.-]+(?:/[\w.-]+)*)")
_FIELD: Final = re.compile(r"([A-Za-z]{1,40}):\s*(.*)$")
_SCOPES: Final = ("globs", "paths", "applyTo")  # fields that name what a file is about: Cursor, Claude Code, Copilot
_ALL: Final = frozenset({"*", "**", "**/*"})
_FOREIGN: Final = frozenset({"node_modules", "vendor", "venv", "dist", "build", "target", "third_party"})
MAX_STATEMENTS: Final = 5_000  # statements of all files
_MAX_OF_FILE: Final = 1_000
_MAX_TEXT: Final = 400  # characters of a statement
_MIN_WORDS: Final = 2
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_HEADING: Final = re.compile(r"(#{1,6})\s+(.*)")
_ITEM: Final = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(.*)")
_SENTENCE: Final = re.compile(r"(?<=[^.\s][.!?;])\s+(?=[A-Z`\"*])|(?<=[^.\s][.!?][)*\"`])\s+(?=[A-Z`\"*])")
_EMPHASIS: Final = re.compile(r"\*\*|__|(?<![\w*])[*_](?=\w)|(?<=\w)[*_](?![\w*])")
_LINK: Final = re.compile(r"\[([^\]]{1,200})\]\([^)\s]{0,300}\)")
_COMMENT: Final = re.compile(r"<!--.*?-->")


class AgentFile(Struct, frozen=True, kw_only=True):
    """A file that agents load; its text is untrusted, and masked.

    `agents` are the titles of the agents that load it. `file` is project-relative, or begins with `~/`. `loaded` is the
    number of lines that the agents read from the start; the rest has no effect. `scope` has the globs of the files that
    it is about; () for all. `head` is the number of lines with fields before the text.
    """

    agents: tuple[str, ...]
    file: str
    lines: tuple[str, ...]
    loaded: int
    loading: Loading = Loading.START
    scope: tuple[str, ...] = ()
    head: int = 0

    @property
    def text(self) -> str:
        """The part that the agents read."""
        return "\n".join(self.lines[: self.loaded])

    @property
    def resident(self) -> str:
        """Text in the context from the start; of a skill, its name and description only."""
        if self.loading is Loading.START:
            return self.text
        return "\n".join(self.lines[: self.head]) if self.loading is Loading.REQUEST else ""


class _Agent(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent loads; the fields are explained in `agent_files.toml`."""

    title: str
    folder: str
    project: tuple[str, ...]
    nested: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    variable: str = ""
    private: tuple[str, ...] = ()
    imports: bool = False
    short: str = ""
    limit: int = MAX_BYTES
    lines: int = 0


_AGENTS: Final[Mapping[str, _Agent]] = msgspec.convert(
    tomllib.loads(Path(__file__).with_name("agent_files.toml").read_text("utf-8")), dict[str, _Agent]
)


def put_first(files: Iterable[AgentFile], agent: str) -> tuple[AgentFile, ...]:
    """Return the files with those of an agent first; it is named as in `Loop.agent`."""
    title = agent_title(agent)
    return tuple(sorted(files, key=lambda file: title not in file.agents))


def agent_title(name: str) -> str:
    """Return the title of an agent named as in `Loop.agent`; of others, the name."""
    return _AGENTS[name].title if name in _AGENTS else name


def project_slug(folder: Path) -> str:
    """Return Claude Code's folder name: `-` replaces all but letters and digits."""
    return _NOT_IN_SLUG.sub("-", str(folder))


def read_agent_files(files: RunnerFiles) -> tuple[AgentFile, ...]:
    """Read the files that agents load at session start, those of the project first."""
    return tuple(one for one in read_all_agent_files(files) if one.loading is Loading.START)


def read_all_agent_files(files: RunnerFiles) -> tuple[AgentFile, ...]:
    """Read all files that agents load at any time, those of the project first.

    Also rules for some paths, and skills. A link and the file that it leads to are one.
    """
    found: dict[Path, AgentFile] = {}
    names = {name for agent in _AGENTS.values() for name in agent.nested}
    nested = list(_find_nested(files, names))
    for agent in _AGENTS.values():
        known: set[Path] = set()
        for path in _paths(agent, files, nested):
            for one in _with_imports(agent, files, path) if agent.imports else (path,):
                target = _resolve(one)
                if target not in known and (target in found or len(found) < MAX_FILES):
                    known.add(target)
                    _add(agent, files, one, target, found)
    return tuple(sorted(found.values(), key=lambda one: (one.file.startswith(("~", "/")), one.file)))


def _add(agent: _Agent, files: RunnerFiles, path: Path, target: Path, found: dict[Path, AgentFile]) -> None:
    """Add a file of an agent to those that were found, by the target of links."""
    if (known := found.get(target)) is not None:
        loaded = max(known.loaded, _count_loaded(agent, path, known.lines))
        found[target] = replace(known, agents=(*known.agents, agent.title), loaded=loaded)
        return
    lines = _read_lines(files, path)
    if not any(map(str.strip, lines)):
        return
    shown, fields, head = files.shown(path), *_read_head(lines)
    loading, scope = Loading.START, tuple(one for name in _SCOPES for one in fields.get(name, ()))[:_MAX_SCOPE]
    scope = () if _ALL.intersection(scope) else scope
    folder = path.parent.relative_to(files.folders.project).as_posix() if shown[:1] not in "~/" else "."
    if path.name == "SKILL.md":
        loading = Loading.REQUEST
    elif path.suffix == ".mdc" and fields.get("alwaysApply") != ("true",):
        loading = Loading.PATH if scope else Loading.REQUEST
    elif scope:
        loading = Loading.PATH
    elif path.name in agent.nested and folder not in (".", agent.folder):
        loading, scope = Loading.PATH, (f"{folder}/**",)
    if fields.get("alwaysApply") == ("true",):
        scope = ()
    loaded = _count_loaded(agent, path, lines)
    found[target] = AgentFile(
        agents=(agent.title,), file=shown, lines=lines, loaded=loaded, loading=loading, scope=scope, head=head
    )


def _read_lines(files: RunnerFiles, path: Path) -> tuple[str, ...]:
    """Return the masked lines of a file; of a large one the first, and a finding."""
    lines: tuple[str, ...] | None = files.read(path, partial(_masked_lines, files, path), _MAX_READ)
    return lines or ()


def _masked_lines(files: RunnerFiles, path: Path, data: bytes) -> tuple[str, ...]:
    is_whole = len(data) <= MAX_BYTES
    lines = mask_secrets(data[:MAX_BYTES].decode("utf-8", "replace")).splitlines()
    if not is_whole:
        lines = lines[:-1] or lines  # the last one may be cut
        message = f"only the first {len(lines):,} lines are compared: the file has more than {MAX_BYTES >> 10} KB"
        files.report(path, message, "too-large", f"line {len(lines) + 1}")
    return tuple(lines)


def _paths(agent: _Agent, files: RunnerFiles, nested: list[Path]) -> Iterator[Path]:
    folders: Folders = files.folders
    for name in agent.project:
        yield from _match(files, folders.project, name.split("/"))
    yield from (path for path in nested if path.name in agent.nested)
    for skills in agent.skills:
        yield from _match(files, folders.project / skills, ["*", "SKILL.md"])
    private = folders.private(agent.variable, agent.folder)
    if private is not None:
        for name in agent.private:
            yield private / name.format(slug=project_slug(folders.project))


def _match(files: RunnerFiles, folder: Path, parts: list[str]) -> Iterator[Path]:
    """Yield the paths below a folder whose parts match."""
    first, *rest = parts
    for path in files.names(folder, first) if "*" in first else (folder / first,):
        if not rest:
            yield path
        elif "*" not in first or path.is_dir():
            yield from _match(files, path, rest)


def _find_nested(files: RunnerFiles, names: set[str]) -> Iterator[Path]:
    """Yield files with these names in own subfolders of the project, top ones first."""
    level, count = [files.folders.project], 0
    for depth in range(_MAX_DEPTH + 1):
        below: list[Path] = []
        for folder in level[: _MAX_FOLDERS - count]:
            count += 1
            for path in files.names(folder):
                if path.name in names and depth:
                    yield path
                elif "." not in path.name and path.name not in _FOREIGN and path.is_dir() and not path.is_symlink():
                    below.append(path)
        level = below


def _with_imports(agent: _Agent, files: RunnerFiles, path: Path) -> Iterator[Path]:
    """Yield a file and the project files that it imports, each once, nearest first."""
    level, known = [path], {path}
    for depth in range(_MAX_IMPORTS + 1):
        yield from level
        if depth < _MAX_IMPORTS and len(known) <= MAX_FILES:
            imported = dict.fromkeys(target for one in level for target in _imports_of(files, one))
            level = [target for target in imported if target not in known][:MAX_FILES]
            known.update(level)
        else:
            return


def _imports_of(files: RunnerFiles, path: Path) -> Iterator[Path]:
    """Yield the files of the project that a file names in lines such as `@style.md`."""
    if path.suffix not in (".md", ".txt", ".mdc"):
        return
    is_code = False
    for line in _read_lines(files, path):
        is_code ^= line.lstrip().startswith("```")
        for name in () if is_code or "@" not in line else _IMPORT.findall(re.sub("`[^`]*`", "", line)):
            target = Path(normpath(path.parent / name))
            if target.suffix and target.is_relative_to(files.folders.project):
                yield target


def _resolve(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


def _read_head(lines: tuple[str, ...]) -> tuple[dict[str, tuple[str, ...]], int]:
    """Return the fields between leading `---` lines as lists, and the lines' number.

    They are not decoded as YAML: `globs: *.ts` is not valid, but usual.
    """
    head, size = split_front_matter(lines, _MAX_HEAD)
    fields: dict[str, tuple[str, ...]] = {}
    name = ""
    for line in head:
        if found := _FIELD.match(line):
            name, values = found[1], found[2].strip().strip("[]").split(",")
        else:
            values = [line.strip().removeprefix("- ")]
        values = [text for value in values if (text := value.strip().strip("\"'"))]
        fields[name] = (*fields.get(name, ()), *values)
    return fields, size


def _count_loaded(agent: _Agent, path: Path, lines: tuple[str, ...]) -> int:
    """Return the number of lines that the agent reads."""
    is_short = not agent.short or path.name == agent.short
    most = agent.lines if agent.lines and is_short else len(lines)
    size = 0
    for number, line in enumerate(lines[:most]):
        size += len(line.encode("utf-8", "replace")) + 1
        if is_short and size > agent.limit:
            return number
    return min(most, len(lines))


def read_instructions(files: Iterable[AgentFile]) -> tuple[InstructionFile, ...]:
    """Return the instructions of all files, without text that ralphdeck wrote there."""
    found, left = [], MAX_STATEMENTS
    for file in files:
        statements = tuple(islice(_statements(file), min(left, _MAX_OF_FILE)))
        left -= len(statements)
        if statements:
            found.append(
                InstructionFile(
                    id=file.file, agents=file.agents, loading=file.loading, scope=file.scope, statements=statements
                )
            )
    return tuple(found)


def _statements(file: AgentFile) -> Iterator[Instruction]:
    lines = file.lines[: file.loaded]
    for first, last, text, section in _blocks(lines, file.head):
        sentences = [one for one in map(str.strip, _SENTENCE.split(_plain(text))) if len(one.split()) >= _MIN_WORDS]
        for one in sentences:
            yield Instruction(one[:_MAX_TEXT], (first, last), section, is_whole=len(sentences) == 1)


def _plain(text: str) -> str:
    return _COMMENT.sub("", _EMPHASIS.sub("", _LINK.sub(r"\1", text)))


def _blocks(lines: Sequence[str], head: int) -> Iterator[tuple[int, int, str, str]]:
    """Yield first and last line, text and section of each list item and paragraph.

    The text of an item below one that ends with a colon begins with that one.
    """
    headings: dict[int, str] = {}
    above: list[tuple[int, str]] = []  # items that end with a colon, by their indent
    block: tuple[int, str] | None = None  # first line and text
    own = find_own_lines(lines)
    is_code = is_comment = False
    for number, line in enumerate((*lines[head:], ""), start=head + 1):
        section = " > ".join(headings.values())
        is_mark = bool(_FENCE.match(line))
        item, heading = _ITEM.match(line), _HEADING.match(line)
        starts = is_mark or is_code or number in own or is_comment or item or heading or not line.strip()
        starts = starts or line[:1] == "|" or line.lstrip().startswith("<!--")
        if block is not None and not starts:
            block = block[0], f"{block[1]} {line.strip()}"
            continue
        if block is not None:
            yield block[0], number - 1, block[1], section
            block = None
        was_comment = is_comment
        is_comment = "-->" not in line and (is_comment or line.lstrip().startswith("<!--"))
        if is_mark:
            is_code = not is_code
        elif is_code or number in own or is_comment or was_comment or not line.strip() or line[:1] == "|":
            continue
        elif heading:
            level = len(heading[1])
            headings = {depth: text for depth, text in headings.items() if depth < level}
            headings[level] = _plain(heading[2])[:80]
            above = []
        elif item:
            indent = len(item[1].expandtabs(4))
            above = [one for one in above if one[0] < indent]
            text = " ".join((*(one for _, one in above), item[2]))
            if item[2].rstrip().endswith(":"):
                above.append((indent, item[2].strip()[:120]))
            else:
                block = number, text
        elif not line.lstrip().startswith("<!--"):
            block = number, line.strip()
