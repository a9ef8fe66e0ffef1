"""Approved lessons as files that agents load, and comparison with such files.

See docs/instructions.md. The text of a file depends only on the approved patterns and their order: it has no date and
no count, so that the same decisions give the same bytes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from core.base.errors import BadInput
from core.base.prompt_text import FENCE
from core.base.text import visible_line
from core.files.managed_text import (
    LESSONS,
    SHARED_INSTRUCTIONS,
    Block,
    OwnFile,
    decode_text,
    find_linked_file,
    imports_shared,
    read_part,
    text_digest,
)
from core.learning.maturity import CODES
from core.records.decisions import EDIT_ANSWERS, edited_file_question_id
from core.records.patterns import Maturity, PatternType
from core.retrieval.rendering import count_tokens, entry_name, format_bold, render_fields

if TYPE_CHECKING:
    from core.base.settings import (
        Settings,
    )
    from core.learning.scoreboard import (
        Scoreboard,
    )
    from core.records.patterns import (
        Pattern,
    )

_INSTRUCTIONS: Final = {"agents-md": SHARED_INSTRUCTIONS, "claude-md": "CLAUDE.md"}
TARGETS: Final = (*_INSTRUCTIONS, "cursor", "copilot", "skills")
_TITLE: Final = "## Approved lessons"
_INTRODUCTION: Final = "Lessons of earlier work in this repository, approved by its maintainers."
_HEADINGS: Final = {
    PatternType.ERROR: "### Errors and their fixes",
    PatternType.SUCCESS: "### What worked",
    PatternType.ANTI: "### What to avoid",
    PatternType.TEMPLATE: "### Templates",
}
"""Headings in their order; others than in a context, because the scan blocks files that imitate one."""
_SKILLS: Final = {
    PatternType.ERROR: (
        "ralphdeck-errors",
        "Known errors of this repository and their fixes. Use when a command, a test or a build fails.",
    ),
    PatternType.SUCCESS: (
        "ralphdeck-approaches",
        "Approaches that worked in this repository. Use before you plan or start a task.",
    ),
    PatternType.ANTI: (
        "ralphdeck-pitfalls",
        "Approaches that failed in this repository, and what to do instead. Use before you change code.",
    ),
    PatternType.TEMPLATE: (
        "ralphdeck-templates",
        "Code templates of this repository. Use before you write similar code.",
    ),
}
"""Name of the skill of each type, and what it is for."""
SKILL_FOLDERS: Final = (".claude/skills", ".agents/skills")  # Claude Code reads the first, other agents the second
MAX_DESCRIPTION: Final = 1024  # characters, by the format of skills
_MAX_TITLE: Final = 80
_MAX_FILES: Final = 200  # files of ours that are looked for in one folder
_FRAME_TOKENS: Final = 100  # of the title, introduction, headings and marks
_ID: Final = re.compile(r"[\w.:]+(?:-[\w.:]+)*")  # IDs that a comment can contain
_ENTRY: Final = re.compile(r"^- \*\*[^\n]* <!-- ([\w.:-]+) -->\r?$", re.MULTILINE)
_SIGN: Final = re.compile(r"[<>`@#\[\]]|-{3,}")  # not in a description: tags, references, code, the end of the header
_COMMENT: Final = re.compile(r" <!-- [\w.:-]+ -->$", re.MULTILINE)
_CODE_FILES: Final = (
    "py|pyi|js|jsx|mjs|cjs|ts|tsx|mts|cts|vue|svelte|go|rs|rb|java|kt|kts|scala|cs|php|c|h|cc|cpp|hpp|m|swift|dart|ex"
    "|exs|lua|pl|r|sh|sql|css|scss|html|md|json|yaml|yml|toml|xml|proto|tf"
)
_FILE: Final = re.compile(rf"(?!.*(?:\.\.|---))[\w-][\w.-]*(?:/[\w.-]+)*\.(?:{_CODE_FILES})", re.ASCII)
_MENTIONS: Final = re.compile(r"\S*@\S+")
"""A word with references to files, which Claude Code, Cursor and others replace by the content: `@path`, `@"path"`."""
_IS_ESCAPED: Final = re.compile(r"(?<!\\)(?:\\\\)*\\\Z")
_LEAD: Final = r"(?:^|(?<=[\s\ufeff\u3001\u3002\uff01\uff1f]))"
_AT_WORDS: Final = (
    "abstractmethod|apply|cached_property|charset|classmethod|container|contextmanager|dataclass|each|else|encode|end|extend"
    "|final|font-face|for|forward|function|if|implementation|import|include|interface|keyframes|layer|media|mixin|namespace"
    "|overload|override|Override|page|param|property|protocol|return|returns|selector|staticmethod|supports|synthesize"
    "|tailwind|throws|type|use|warn|while|Before|After|Test|BeforeEach|AfterEach|Deprecated|SuppressWarnings"
)
_KEYWORD: Final = rf"(?:{_AT_WORDS})(?=\Z|[\s({{;])"
_DECORATOR: Final = re.compile(rf"^(\s*)@(?=\w)(?!{_KEYWORD})")
_ARGUMENT: Final = re.compile(rf"{_LEAD}@(?=\S)(?!@(?:\s|\Z)|{_KEYWORD})")  # not the `@@` of a diff
"""The same in code, which Claude Code expands when it loads a skill, also without a folder or an ending (`@Makefile`).
Most languages read the same with a space after `@` in the first, and with a backslash before it in the second; the
words of languages remain."""
_COMMAND: Final = re.compile(r"!(?=`)")
"""Before code, a command that Claude Code runs when it loads a skill."""
_ESCAPE: Final = re.compile(r"\\(?=[@#<>\[\]()`*_!|/~=+:.-])|(?<=[<\[!])\\")
_ATTACHMENT: Final = re.compile(r"#(?=\w+:)")
"""A reference to a file or tool for Copilot."""


class Entry(Struct, frozen=True):
    """One approved pattern as it is written."""

    pattern_id: str
    type: PatternType
    title: str
    text: str
    files: tuple[str, ...]  # to which the pattern is limited

    @property
    def folder(self) -> str:
        """The folder that has all its files; "" if it is not limited to files."""
        parents = [str(PurePosixPath(file).parent) for file in self.files]
        return (os.path.commonpath(parents) or ".") if parents else ""


class CompiledFile(Struct, frozen=True):
    """A file with lessons; `text` is "" if it must have none."""

    path: str  # relative to the project
    text: str
    is_whole: bool = False

    def editor(self, *, replaces_edits: bool = False) -> Block | OwnFile:
        """Return what adds the lessons to the file and removes them."""
        if self.is_whole:
            return OwnFile(self.text, replaces_edits)
        return Block(self.text, name=LESSONS, replaces_edits=replaces_edits)


class Selection(Struct, frozen=True):
    """The approved patterns of a project."""

    chosen: tuple[Entry, ...]  # within the budget, best first
    approved: dict[str, Entry]  # all that may be written, best first
    left_out: dict[str, str]  # reasons, by the ID of the pattern
    budget: int
    stale: tuple[str, ...] = ()  # IDs of the chosen patterns that are about something that was removed

    @property
    def tokens(self) -> int:
        return count_entries(self.chosen)

    def fits(self, entries: Iterable[Entry]) -> bool:
        return count_entries(entries) <= self.budget


def count_entries(entries: Iterable[Entry]) -> int:
    """Estimate the number of tokens of lessons in a file."""
    tokens = sum(count_tokens(entry.text) for entry in entries)
    return tokens + _FRAME_TOKENS if tokens else 0


def select_lessons(
    patterns: Mapping[str, Pattern],
    board: Scoreboard,
    settings: Settings,
    budget: int,
    stale: Collection[str] = (),
) -> Selection:
    """Choose approved patterns within a number of tokens, best evidence first.

    Only texts that a person approved count, and only if agents may get them (docs/instructions.md#which-lessons).
    `stale` are patterns that are about something that was removed; they come last.
    """
    from core.base.scanning.verdict import find_combined_harm, find_harm_when_cut  # Review rarely needs it

    limit = settings.injection.max_field_chars
    withheld = {id: why for id in patterns if (why := _why_withheld(board, id))}
    candidates = [pattern for id, pattern in patterns.items() if id not in withheld]
    candidates.sort(key=lambda pattern: (pattern.id in stale, *_order(board, pattern)))
    selection = Selection((), {}, withheld, budget)
    chosen: list[Entry] = []
    for pattern in candidates:
        orders = board.stops_orders(pattern.id)
        if not _ID.fullmatch(pattern.id):
            selection.left_out[visible_line(pattern.id, 80)] = "its ID cannot be written in a comment"
            continue
        entry = make_entry(pattern, limit)
        if does := find_harm_when_cut(pattern, limit, orders=orders):
            selection.left_out[pattern.id] = f"when cut to {limit} characters, it {does}"
            continue
        selection.approved[pattern.id] = entry
        if not selection.fits([*chosen, entry]):
            selection.left_out[pattern.id] = "over the token budget"
            continue
        known = [patterns[one.pattern_id] for one in chosen]
        text = _COMMENT.sub("", _render_text([*chosen, entry]))
        if does := find_combined_harm(text, [*known, pattern], orders=orders):
            selection.left_out[pattern.id] = f"together with the lessons before it, the text {does}"
            continue
        chosen.append(entry)
    stale = tuple(entry.pattern_id for entry in chosen if entry.pattern_id in stale)
    return Selection(tuple(chosen), selection.approved, selection.left_out, budget, stale)


def _why_withheld(board: Scoreboard, pattern_id: str) -> str:
    """Return why a pattern is not written, however large the budget is, or ""."""
    row = board.row(pattern_id)
    if board.held[row]:
        return "held, because the text gives orders"
    if board.quarantined[row]:
        return "in quarantine"
    if board.state_codes[row] == CODES[Maturity.DEPRECATED]:
        return "deprecated"
    if not board.injectable[row]:
        return "it fails often, or another lesson warns of it"
    return "" if board.is_approved(pattern_id) else "not approved by a person"


def _order(board: Scoreboard, pattern: Pattern) -> tuple[float, float, int, str]:
    """Order by state, lower bound of the success rate, uses, then ID."""
    row = board.row(pattern.id)
    lower = round(float(board.interval[0][row]), 2)
    return -float(board.multiplier[row]), -lower, -int(board.uses[row]), pattern.id


def make_entry(pattern: Pattern, limit: int) -> Entry:
    lines = [f"- {format_bold(entry_name(pattern), limit)}", *render_fields(pattern, limit)]
    head, *rest = _neutralize(lines)
    places = (place.partition("::")[0].partition(":")[0] for place in (*pattern.places, *pattern.location_hints))
    files = sorted({place for place in places if len(place) <= 200 and _FILE.fullmatch(place)})
    title = visible_line(_SIGN.sub("", entry_name(pattern)), _MAX_TITLE)
    text = "\n".join([f"{head} <!-- {pattern.id} -->", *rest])
    return Entry(pattern.id, pattern.type, title, text, tuple(files))


def _neutralize(lines: Iterable[str]) -> Iterator[str]:
    """Escape text by which agents import a file, run a command or hide a comment."""
    is_code = False
    for line in lines:
        if line.strip().startswith(FENCE):
            is_code = not is_code
        line = _COMMAND.sub("!\\\\", line.replace("<!--", "<\\!--"))
        if is_code:
            line = _ARGUMENT.sub("\\\\@", _DECORATOR.sub("\\1@ ", line))
        else:
            line = _ATTACHMENT.sub("\\\\#", _MENTIONS.sub(_escape_mentions, line)).replace("](", "]\\(")
        yield line


def _escape_mentions(word: re.Match[str]) -> str:
    """Escape each `@` of a word except in an address or version (`left-pad@1.3`).

    A second `@` is escaped, because Markdown makes a link of an address, and what follows begins a text of its own.
    """
    escaped, *others = word[0].split("@")
    is_mention = not escaped[-1:].isalnum()
    for other in others:
        needs_escape = is_mention and not _IS_ESCAPED.search(escaped)
        escaped += f"\\@{other}" if needs_escape else f"@{other}"
        is_mention = True
    return escaped


def remove_escapes(text: str) -> str:
    """Return a text of lessons without the backslashes that the rendering adds."""
    return _ESCAPE.sub("", text)


def render_target(target: str, entries: Sequence[Entry], project: Path) -> list[CompiledFile]:
    """Return the files of a target, and earlier ones that must have no lessons now."""
    earlier: Iterable[CompiledFile] = ()
    match target:
        case "skills":
            wanted = [*_render_skills(entries)]
        case "cursor":
            wanted = [*_render_rules(entries)]
            earlier = _list_files(project, ".cursor/rules", re.compile(r"ralphdeck(?:-[\w.-]+)?\.mdc"))
        case "copilot":
            wanted = [*_render_instructions(entries)]
            name = re.compile(r"ralphdeck-[\w.-]+\.instructions\.md")
            earlier = _list_files(project, ".github/instructions", name)
        case _:
            wanted = [CompiledFile(_find_instructions(target, project), _render_text(entries))]
            earlier = [CompiledFile(_INSTRUCTIONS[target], "")]
    paths = {file.path for file in wanted}
    return [*wanted, *(file for file in earlier if file.path not in paths)]


def _render_text(entries: Sequence[Entry]) -> str:
    """Render entries with a title and headings by type; "" without entries."""
    lines = [_TITLE, "", _INTRODUCTION] if entries else []
    for kind, heading in _HEADINGS.items():
        own = [entry.text for entry in entries if entry.type is kind]
        if own:
            lines += ["", heading, "", *own]
    return "\n".join(lines)


def _render_skills(entries: Sequence[Entry]) -> Iterator[CompiledFile]:
    for kind, (name, purpose) in _SKILLS.items():
        own = [entry for entry in entries if entry.type is kind]
        text = ""
        if own:
            description = visible_line(f"{purpose} About: {'; '.join(one.title for one in own)}", MAX_DESCRIPTION)
            text = _with_header({"name": name, "description": json.dumps(description, ensure_ascii=False)}, own)
        for folder in SKILL_FOLDERS:
            yield CompiledFile(f"{folder}/{name}/SKILL.md", text, is_whole=True)


def _render_rules(entries: Sequence[Entry]) -> Iterator[CompiledFile]:
    """Render Cursor rules: one for all files, one for each folder with own lessons."""
    for folder, own in _group(entries):
        if folder:
            header = {"description": f"Approved lessons about {_shown_folder(folder)}", "globs": ",".join(_globs(own))}
        else:
            header = {"description": "Approved lessons of this repository", "globs": ""}
        header["alwaysApply"] = "false" if folder else "true"
        text = _with_header(header, own) if own else ""
        yield CompiledFile(f".cursor/rules/ralphdeck{_suffix(folder)}.mdc", text, is_whole=True)


def _render_instructions(entries: Sequence[Entry]) -> Iterator[CompiledFile]:
    """Render Copilot instructions: a section for all files, a file for each folder."""
    for folder, own in _group(entries):
        if not folder:
            yield CompiledFile(".github/copilot-instructions.md", _render_text(own))
            continue
        header = {"description": f"Approved lessons about {_shown_folder(folder)}"}
        header["applyTo"] = json.dumps(",".join(_globs(own)))
        path = f".github/instructions/ralphdeck{_suffix(folder)}.instructions.md"
        yield CompiledFile(path, _with_header(header, own), is_whole=True)


def _with_header(header: dict[str, str], entries: Sequence[Entry]) -> str:
    lines = (f"{name}: {value}".rstrip() for name, value in header.items())
    return "\n".join(["---", *lines, "---", "", _render_text(entries)])


def _group(entries: Sequence[Entry]) -> list[tuple[str, list[Entry]]]:
    """Return the entries by folder; those for all files first, under ""."""
    folders = sorted({entry.folder for entry in entries} - {""})
    return [(folder, [entry for entry in entries if entry.folder == folder]) for folder in ("", *folders)]


def _globs(entries: Iterable[Entry]) -> list[str]:
    """Return the globs of files; a name without a folder is meant in any folder."""
    files = sorted({file for entry in entries for file in entry.files})
    return [glob for file in files for glob in ((file,) if "/" in file else (file, f"**/{file}"))]


def _shown_folder(folder: str) -> str:
    return "files in several folders" if folder == "." else folder


def _suffix(folder: str) -> str:
    """Return the end of the file name for a folder, different for each folder."""
    if not folder:
        return ""
    return "-files" if folder == "." else f"-in-{folder.replace('-', '--').replace('/', '-')}"


def _find_instructions(target: str, project: Path) -> str:
    """Return a target's file: AGENTS.md also if CLAUDE.md imports it or links to it."""
    file = find_linked_file(project / _INSTRUCTIONS[target], project, _INSTRUCTIONS.values())
    if target == "claude-md" and imports_shared(file, project):
        return SHARED_INSTRUCTIONS
    return file.relative_to(project).as_posix()


def _list_files(project: Path, folder: str, name: re.Pattern[str]) -> Iterator[CompiledFile]:
    """Yield files with lessons of an earlier run, as files that must have none."""
    try:
        with os.scandir(project / folder) as found:
            names = sorted(entry.name for entry in found if name.fullmatch(entry.name))[:_MAX_FILES]
    except OSError:
        return
    for one in names:
        file = CompiledFile(f"{folder}/{one}", "", is_whole=True)
        try:
            is_ours = read_present(file, project) is not None
        except BadInput:  # who works on the file reports it
            is_ours = True
        if is_ours:
            yield file


class PresentFile(Struct, frozen=True):
    """The lessons in a file, as they are."""

    text: str
    digest: str  # that its mark records
    data: bytes

    @property
    def is_edited(self) -> bool:
        """Whether it is not what was written."""
        return text_digest(self.text) != self.digest

    @property
    def ids(self) -> list[str]:
        """The IDs of the patterns in it, in their order."""
        return _ENTRY.findall(self.text)

    @property
    def frame(self) -> str:
        """The text without those of patterns, and without empty lines."""
        text = self.text.replace("\r", "")
        for entry in self.entries.values():
            text = text.replace(entry, "", 1)
        return "\n".join(filter(None, text.split("\n")))

    @property
    def entries(self) -> dict[str, str]:
        """The text of each pattern in it, by ID."""
        starts = [*_ENTRY.finditer(self.text)]
        ends = [*(start.start() for start in starts[1:]), len(self.text)]
        found = {}
        for start, end in zip(starts, ends, strict=False):
            lines = self.text[start.start() : end].replace("\r", "").split("\n")
            body = next((n for n, line in enumerate(lines) if n and line and not line.startswith(" ")), len(lines))
            found[start[1]] = "\n".join(lines[:body]).rstrip()
        return found


def read_present(file: CompiledFile, project: Path) -> PresentFile | None:
    """Read a file's lessons, or None. Raises BadInput for links and damaged marks."""
    try:
        data = read_part(project / file.path, project)
        if data is None:
            return None
        if file.is_whole:
            text, digest = OwnFile("").split(data)
            return PresentFile(text, digest, data) if digest else None
        block = Block("", name=LESSONS).find(decode_text(data))
        return PresentFile(block.text, block.digest, data) if block is not None else None
    except BadInput as error:
        raise BadInput(f"{file.path}: {error}") from None


Status = Literal["current", "missing", "outdated", "edited", "left", "broken"]
KEEP, RESTORE, TAKE = EDIT_ANSWERS
_MAX_DETAILS: Final = 5


class FileStatus(Struct, frozen=True):
    """A file of a target, compared with what it should contain.

    `edited`: a person changed the lessons. `left`: the same, and an answer in Review leaves the file to its owner.
    `broken`: it cannot be read. `may_replace` is whether an edit may be replaced.
    """

    file: CompiledFile  # as it should be
    status: Status
    details: tuple[str, ...] = ()
    present: PresentFile | None = None
    may_replace: bool = False

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def exists_or_should(self) -> bool:
        """Whether the file has lessons, should have some, or cannot be read."""
        return self.present is not None or self.status != "current"


def check_target(
    target: str, selection: Selection, project: Path, answered: Collection[str] = (), *, is_exact: bool = False
) -> list[FileStatus]:
    """Compare the files of a target with the approved patterns.

    `answered` are dismissed questions. If `is_exact`, files must contain what a new run would choose, in its order;
    otherwise approved patterns in any order are current unless others fit into the budget: evidence changes every day.
    """
    entries = list(selection.chosen)
    if not is_exact:
        ids = _list_ids(target, project)
        kept = [selection.approved[id] for id in ids if id in selection.approved]
        if selection.fits(kept):  # unless the budget is a smaller one now
            entries = kept
            for entry in selection.chosen:
                if entry.pattern_id not in ids and selection.fits([*entries, entry]):
                    entries.append(entry)
    return [_check_file(file, selection, project, answered) for file in render_target(target, entries, project)]


def list_to_write(
    target: str, selection: Selection, project: Path, answered: Collection[str] = (), *, force: bool = False
) -> list[FileStatus]:
    """Compare files as `check_target` does; exactly if one is not current.

    That is with the newest choice and order, so nothing is written that a check calls current, unless `force`.
    """
    found = check_target(target, selection, project, answered)
    if not force and all(file.status in ("current", "left", "edited") and not file.may_replace for file in found):
        return found
    return check_target(target, selection, project, answered, is_exact=True)


def _list_ids(target: str, project: Path) -> list[str]:
    """Return the IDs of the patterns in the files of a target, in their order."""
    ids: dict[str, None] = {}
    for file in render_target(target, (), project):
        try:
            present = read_present(file, project)
        except BadInput:
            continue
        ids.update(dict.fromkeys(present.ids if present is not None else ()))
    return list(ids)


def _check_file(file: CompiledFile, selection: Selection, project: Path, answered: Collection[str]) -> FileStatus:
    try:
        present = read_present(file, project)
    except BadInput as error:
        return FileStatus(file, "broken", (str(error).removeprefix(f"{file.path}: "),))
    if present is None:
        return FileStatus(file, "missing" if file.text else "current")
    if text_digest(present.text) == text_digest(file.text):
        return FileStatus(file, "current", present=present)
    if not is_edited(file.path, present, answered) or remove_escapes(present.text) == remove_escapes(f"{file.text}\n"):
        return FileStatus(file, "outdated", _describe(file, present, selection), present)
    digest = text_digest(present.text)
    kept = edited_file_question_id(file.path, answer=KEEP)
    if any(key.startswith(kept) for key in answered):
        return FileStatus(file, "left", present=present)
    may_replace = edited_file_question_id(file.path, digest, answer=RESTORE) in answered
    return FileStatus(file, "edited", tuple(_list_edits(present, selection)), present, may_replace)


def is_edited(path: str, present: PresentFile, answered: Collection[str]) -> bool:
    """Return whether lessons in a file were edited and the edit was not taken over."""
    taken = edited_file_question_id(path, text_digest(present.text), answer=TAKE)
    return present.is_edited and taken not in answered


def _describe(file: CompiledFile, present: PresentFile, selection: Selection) -> tuple[str, ...]:
    """Describe how an outdated file differs, by pattern."""
    wanted = PresentFile(file.text, "", b"").entries
    details = [f"{id} is not in it" for id in wanted if id not in present.entries]
    for id, text in present.entries.items():
        if id not in wanted:
            is_elsewhere = id in selection.approved
            details.append(f"{id} does not belong in it" if is_elsewhere else f"{id} is not approved")
        elif text != wanted[id]:
            details.append(f"{id} has changed")
    details = details or ["its title, headings or order have changed"]
    more = len(details) - _MAX_DETAILS
    return (*details[:_MAX_DETAILS], f"{more} more") if more > 0 else tuple(details)


def _list_edits(present: PresentFile, selection: Selection) -> Iterator[str]:
    """Name the patterns whose text in the file is another one."""
    for id, text in present.entries.items():
        if id not in selection.approved or selection.approved[id].text != text:
            yield f"the text of {visible_line(id, 80)} differs"
