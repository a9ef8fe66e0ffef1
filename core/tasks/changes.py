"""What an action changed in files: diffs of tools, parameters, shell commands."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.base.shell_commands import parse_check
from core.base.text import plural
from core.files.file_access import open_regular
from core.files.file_reader import decode_json
from core.records.episodes import TARGETS
from core.sources import normalize

if TYPE_CHECKING:
    from core.records.episodes import Action


MAX_DIFF: Final = 12_000  # maximum number of characters of a described change
_MAX_BYTES: Final = 400_000  # maximum size of a file that is compared
_MAX_LINES: Final = 4_000
_CONTEXT: Final = 1
_PATCH_KEYS: Final = ("structuredPatch", "structured_patch")
_DIFF_KEYS: Final = ("diff", "patch", "fileDiff", "file_diff", "unified_diff", "udiff")
_ORIGINAL_KEYS: Final = ("originalFile", "original_file", "originalContent", "original_content", "oldContent")
_CONTENT_KEYS: Final = ("content", "file_text", "contents", "newContent", "new_content")
_PAIRS: Final = (
    ("old_string", "new_string"),
    ("old_str", "new_str"),
    ("old_text", "new_text"),
    ("oldString", "newString"),
)
_HUNK: Final = lazy_regex(r"@@ -(\d{1,7})(?:,(\d{1,7}))? \+(\d{1,7})(?:,(\d{1,7}))? @@.*")
_HEADER: Final = lazy_regex(r"\+\+\+ (?:b/)?(.{1,1000}?)(?:\t.*)?$")
_PATCH_FILE: Final = lazy_regex(r"\*\*\* (?P<kind>Update|Add|Delete) File: (?P<file>.{1,1000})$")


class Hunk(NamedTuple):
    """Changed lines of a file and lines around them; each starts with ` `, `-`, `+`."""

    file: str
    old_start: int  # number of the first line before the change
    new_start: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        return [line[1:] for line in self.lines if line[:1] != "+"]

    @property
    def new(self) -> list[str]:
        return [line[1:] for line in self.lines if line[:1] != "-"]


def describe_change(params: Mapping[str, Any], response: Any, project: str) -> str:
    """Return an editing tool's unified diff, cut at whole hunks; "" if unknown."""
    result = response if isinstance(response, Mapping) else {}
    file = next((value for name in TARGETS if isinstance(value := params.get(name), str) and value), "")
    hunks = [*_from_response(file, params, result)] or [*_from_parameters(file, params, project)]
    return format_hunks(hunks)


def format_hunks(hunks: Iterable[Hunk], limit: int = MAX_DIFF) -> str:
    lines: list[str] = []
    size, last = 0, None
    for hunk in hunks:
        old, new = len(hunk.old), len(hunk.new)
        added = [] if hunk.file == last else [f"--- {hunk.file}", f"+++ {hunk.file}"]
        added += [f"@@ -{hunk.old_start},{old} +{hunk.new_start},{new} @@", *hunk.lines]
        size += sum(map(len, added)) + len(added)
        if size > limit:
            break
        lines += added
        last = hunk.file
    return "\n".join(lines)


def parse_diff(text: str, file: str = "") -> list[Hunk]:
    """Parse a unified diff; `file` is that of hunks before the first header."""
    found: list[Hunk] = []
    body: list[str] | None = None
    at = (0, 0)
    left = [0, 0]

    def close() -> None:
        if body and any(line[:1] in "+-" for line in body):
            found.append(Hunk(file, *at, tuple(body)))

    for line in text.split("\n")[:_MAX_LINES]:
        if hunk := _HUNK.fullmatch(line):
            close()
            body, at = [], (int(hunk[1]), int(hunk[3]))
            left = [int(hunk[2] or 1), int(hunk[4] or 1)]
        elif body is not None and (left[0] > 0 or left[1] > 0) and line[:1] in (" ", "+", "-", ""):
            body.append(line or " ")
            left[0] -= line[:1] != "+"
            left[1] -= line[:1] != "-"
        elif header := _HEADER.fullmatch(line):
            close()
            body, file = None, header[1]
    close()
    return found


def compare_texts(file: str, old: str, new: str) -> list[Hunk]:
    """Return the hunks between two contents of a file."""
    if max(len(old), len(new)) > _MAX_BYTES:
        return []
    import difflib  # only for edits whose response has no diff

    lines = difflib.unified_diff(old.splitlines()[:_MAX_LINES], new.splitlines()[:_MAX_LINES], lineterm="", n=_CONTEXT)
    return parse_diff("\n".join([*lines][2:]), file)


def _from_response(file: str, params: Mapping[str, Any], result: Mapping[str, Any]) -> Iterator[Hunk]:
    for name in _PATCH_KEYS:
        patch = result.get(name)
        if isinstance(patch, list) and patch:
            for one in patch:
                if isinstance(one, dict) and isinstance(lines := one.get("lines"), list):
                    old, new = one.get("oldStart"), one.get("newStart")
                    if isinstance(old, int) and isinstance(new, int) and all(isinstance(line, str) for line in lines):
                        yield Hunk(file, old, new, tuple(line for line in lines if line[:1] in "+- "))
            return
    diffs = (value for name in _DIFF_KEYS if isinstance(value := result.get(name), str) and "@@" in value)
    if diff := next(diffs, ""):
        yield from (hunk._replace(file=file or hunk.file) for hunk in parse_diff(diff, file))
        return
    original = next((value for name in _ORIGINAL_KEYS if isinstance(value := result.get(name), str)), None)
    content = next((value for name in _CONTENT_KEYS if isinstance(value := params.get(name), str)), None)
    if content is not None and original is not None:
        yield from compare_texts(file, original, content)


def _from_parameters(file: str, params: Mapping[str, Any], project: str) -> Iterator[Hunk]:
    texts = [value for name in ("command", "patch", "input", "diff") if isinstance(value := params.get(name), str)]
    if patch := next((text for text in texts if "*** Begin Patch" in text or _PATCH_FILE.search(text)), ""):
        yield from _from_patch(patch, project)
        return
    if diff := next((text for text in texts if "@@" in text and "\n+" in text), ""):
        yield from parse_diff(diff, file)
        return
    edits = params.get("edits")
    pairs = [
        *text_pairs(params),
        *(pair for one in (edits if isinstance(edits, list) else ()) for pair in text_pairs(one)),
    ]
    if pairs:
        yield from _from_pairs(file, pairs, project)
        return
    content = next((value for name in _CONTENT_KEYS if isinstance(value := params.get(name), str)), "")
    if content:  # the content before is unknown
        lines = tuple(f"+{line}" for line in content.splitlines()[:_MAX_LINES])
        yield Hunk(file, 0, 1, lines)


def text_pairs(params: Any) -> Iterator[tuple[str, str]]:
    """Yield the old and the new text in the parameters of an edit that names both."""
    for old, new in _PAIRS:
        if isinstance(params, Mapping) and isinstance(params.get(old), str) and isinstance(params.get(new), str):
            yield params[old], params[new]
            return


def _from_pairs(file: str, pairs: Sequence[tuple[str, str]], project: str) -> Iterator[Hunk]:
    """Replace the new texts in the current file by the old ones, and compare."""
    current = _read(file, project)
    before = current
    for old, new in reversed(pairs):
        if new and new in before:
            before = before.replace(new, old, 1)
        elif new or not current:
            before = current = ""
            break
        else:  # a deletion leaves no trace of its place
            yield Hunk(file, 0, 0, tuple(f"-{line}" for line in old.splitlines()[:_MAX_LINES]))
            return
    if current:
        yield from compare_texts(file, before, current)
    else:
        for old, new in pairs:
            yield from compare_texts(file, old, new)


def _from_patch(patch: str, project: str) -> Iterator[Hunk]:
    """Parse a patch of Codex; line numbers are those of files after the change."""
    file, kind = "", ""
    body: list[str] = []

    def make() -> Iterator[Hunk]:
        if file and any(line[:1] in ("+", "-") for line in body):
            new = [line[1:] for line in body if line[:1] != "-"]
            start = 1 if kind == "Add" else _find_lines(_read(file, project).splitlines(), new)
            yield Hunk(relative_to_project(file, project), start, start, tuple(body))

    for line in patch.split("\n")[:_MAX_LINES]:
        if line.startswith(("*** ", "@@")):
            yield from make()
            body = []
            if found := _PATCH_FILE.match(line):
                file, kind = found["file"].strip(), found["kind"]
            continue
        if file and line[:1] in (" ", "+", "-", ""):
            body.append(line or " ")
    while body and not body[-1].strip():
        body.pop()
    yield from make()


def _find_lines(lines: list[str], wanted: list[str]) -> int:
    """Return the number of the first line of a block; 0 if it is not in the file."""
    if not wanted:
        return 0
    places = (n for n, line in enumerate(lines) if line == wanted[0] and lines[n : n + len(wanted)] == wanted)
    return next(places, -1) + 1


def _read(file: str, project: str) -> str:
    """Read a project file; "" if outside, too large or not a regular text file."""
    relative = relative_to_project(file, project)
    if not project or not relative or relative.startswith(("/", "../")) or "\0" in relative:
        return ""
    path = Path(project) / relative
    try:
        if not path.resolve().is_relative_to(Path(project).resolve()):
            return ""
        handle = open_regular(path, os.O_RDONLY)
    except (OSError, ValueError, RuntimeError):
        return ""
    with os.fdopen(handle, "rb") as stream:
        data = stream.read(_MAX_BYTES + 1)
    try:
        return data.decode() if len(data) <= _MAX_BYTES else ""
    except UnicodeDecodeError:
        return ""


# Diffs of actions, from their parameters or their output

MAX_COMPARED: Final = 400  # maximum number of lines that are compared; new files need no comparison
MAX_LINES: Final = 200  # maximum number of lines of a diff, besides a line with the number of omitted ones
_DIFFS: Final = ("diff", "patch")
_CONTENTS: Final = ("content", "file_text", "contents", "new_source")
_EDITS: Final = "edits"  # parameter with a list of old and new texts, of tools that change several places
DIFF_PARAMS: Final = frozenset({*_DIFFS, *_CONTENTS, _EDITS, *(name for names in _PAIRS for name in names)})
"""Names of parameters that `build_diff` uses."""
_WRITING: Final = frozenset({"write", "edit", "create"})  # action types and tool names whose content replaces a file


def build_diff(action: Action) -> tuple[str, ...]:
    """Return the lines of a unified diff; empty if the action changes nothing.

    If the output of the action is a diff, it is that, see `has_diff_output`.

    The diff shows the intended change, even if the action failed. The old content of a file that was written as a whole
    is unknown, so all of its lines count as added.
    """
    is_own = has_diff_output(action)
    lines = tuple(action.output.splitlines() if is_own else _lines(dict(action.params), action))
    omitted = len(lines) - MAX_LINES
    return (*lines[:MAX_LINES], f"… {plural(omitted, 'more line')}") if omitted > 0 else lines


def has_diff_output(action: Action) -> bool:
    """Return whether the output of an action is the diff of its change."""
    return action.output.startswith("--- ") and "\n@@ -" in action.output


def _lines(params: Mapping[str, str], action: Action) -> Iterator[str]:
    diff = action.param(*_DIFFS)
    if diff:
        yield from diff.splitlines()
        return
    changes = [*text_pairs(params)]
    changes += _edits(params.get(_EDITS, ""))
    writes = not _WRITING.isdisjoint((normalize.word(action.type), normalize.word(action.tool)))
    if not changes and writes and (content := action.param(*_CONTENTS)):
        changes.append(("", content))
    if not changes:
        return
    yield f"--- {action.target}"
    yield f"+++ {action.target}"
    for old, new in changes:
        yield from _compare(old.splitlines(), new.splitlines())


def _compare(old: list[str], new: list[str]) -> Iterator[str]:
    if not old and new:
        yield f"@@ -0,0 +1{f',{len(new)}' if len(new) > 1 else ''} @@"
        yield from (f"+{line}" for line in new)
        return
    import difflib  # not needed by hooks

    yield from islice(difflib.unified_diff(old[:MAX_COMPARED], new[:MAX_COMPARED], lineterm=""), 2, None)
    if (more := max(len(old), len(new)) - MAX_COMPARED) > 0:
        yield f"… {plural(more, 'more line')} not compared"


def _edits(text: str) -> list[tuple[str, str]]:
    found: Any = decode_json(text.encode("utf-8", "replace")).value if text else None
    edits = [edit for edit in found if isinstance(edit, dict)] if isinstance(found, list) else []
    return [
        (normalize.text(edit[old]), normalize.text(edit[new]))
        for edit in edits[:MAX_COMPARED]
        for old, new in _PAIRS
        if old in edit and new in edit
    ]


# Edits by shell commands

_MAX_TEXT: Final = 20_000
_MAX_SHELL_LINES: Final = 400
_FILE: Final = r"(?P<file>[\w./@+-]{1,300})"
_IN_PLACE: Final = lazy_regex(
    r"(?:^|[;&|\n]\s*)(?:g?sed|perl|ruby)\s+(?:-\S+\s+){0,4}-\w*i\S*\s+(?P<rest>(?:'[^'\n]{0,1000}'"
    r"|\"[^\"\n]{0,1000}\"|[^;&|\n'\"]){1,200})",
    literals=("sed", "perl", "ruby"),
)
_HEREDOC: Final = lazy_regex(
    r"(?:cat|tee)\s[^\n]{0,300}?<<-?\s*(?P<quote>['\"]?)(?P<end>\w{1,40})(?P=quote)[^\n]{0,300}\n(?P<body>(?s:.*?))\n(?P=end)\s*(?:\n|$)",
    literals=("<<",),
)
_TARGET: Final = lazy_regex(rf"(?:>{{1,2}}\s*|\btee\s+(?:-a\s+)?){_FILE}")
_PRINTED: Final = lazy_regex(
    rf"(?:^|[;&|\n]\s*)(?:echo|printf)\s[^;&|\n>]{{0,2000}}>{{1,2}}\s*{_FILE}", literals=(">",)
)
_APPLIED: Final = lazy_regex(
    r"(?:^|[;&|\n]\s*)(?:git\s+(?:apply|am|checkout|restore|revert|cherry-pick|stash\s+pop)|patch\s+-|mv\s|cp\s|rm\s)",
    literals=("git", "patch", "mv", "cp", "rm"),
)
_SCRIPT: Final = lazy_regex(
    r"\bpython[\d.]*\s+(?:-\s*)?<<|\bpython[\d.]*\s+-c\b|\bnode\s+-e\b", literals=("python", "node")
)
_WRITING_CODE: Final = lazy_regex(
    r"\.write_text\(|\bopen\([^()\n]{1,200},\s*['\"](?:w|a|r\+)|\.writelines?\(|writeFileSync\("
)
_SUBSTITUTION: Final = lazy_regex(
    r"['\"]?(?:\d{0,6}\s*)?s(?P<mark>[/|#,@!:])(?P<old>(?:(?!(?P=mark))(?:\\."
    r"|[^\\\n])){1,300})(?P=mark)(?P<new>(?:(?!(?P=mark))(?:\\.|[^\\\n])){0,300})(?P=mark)"
)
_ESCAPED: Final = lazy_regex(r"\\([^\w\s])")


@lru_cache(1024)
def edits_files(command: str) -> bool:
    """Return whether a shell command edits files, not only prints, checks or looks."""
    text = command[:_MAX_TEXT]
    if not text or parse_check(text)[0]:
        return False
    forms = (_IN_PLACE, _HEREDOC, _PRINTED, _APPLIED)
    is_script = _SCRIPT.search(text) is not None and _WRITING_CODE.search(text) is not None
    return "*** Begin Patch" in text or is_script or any(form.search(text) for form in forms)


def find_shell_hunks(command: str) -> list[Hunk]:
    """Return changes that a command shows (sed, here-documents), lines unknown."""
    text = command[:_MAX_TEXT]
    found = []
    for edit in _IN_PLACE.finditer(text):
        rest = edit["rest"]
        file = next((word for word in reversed(rest.split()) if re.fullmatch(r"[\w./@+-]{1,300}", word)), "")
        for change in _SUBSTITUTION.finditer(rest):
            old, new = (_ESCAPED.sub(r"\1", change[name]) for name in ("old", "new"))
            found.append(Hunk(file, 0, 0, tuple([f"-{old}"] + [f"+{new}"] * bool(new))))
    for written in _HEREDOC.finditer(text):
        head = written[0].split("\n", 1)[0]
        if target := _TARGET.search(head):
            lines = written["body"].split("\n")[:_MAX_SHELL_LINES]
            found.append(Hunk(target["file"], 0, 1, tuple(f"+{line}" for line in lines)))
    return found
