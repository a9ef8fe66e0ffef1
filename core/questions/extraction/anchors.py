"""Anchors of a fix: the changed files, and the names that its lines define; docs/extraction.md#anchors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from core.base.paths import relative_to_project
from core.base.regexes import lazy_regex
from core.questions.extraction.change_kinds import is_document
from core.records.anchors import Anchor, is_manifest, list_anchors, parse_anchor
from core.tasks.error_messages import is_test_file

if TYPE_CHECKING:
    from core.questions.extraction.fixes import Repair

_MAX_FILES: Final = 3
_MAX_NAMES: Final = 3
_MAX_LINE: Final = 300  # characters of a line that are read
_MIN_NAME: Final = 3  # characters; shorter names are found by chance
_HEADER: Final = lazy_regex(r"@@ (\S.{0,300}) @@$|\+\+\+ (?:b/)?(\S.{0,300})$")
_NAME: Final = r"([A-Za-z_$][\w$]{0,80})"
_DEFINED: Final = lazy_regex(
    r"[ +]\s*(?:(?:export|default|public|private|protected|internal|static|final|abstract|async|pub)\s+){0,4}"
    rf"(?:def|class|func|fn|function|struct|enum|trait|interface|type|module)\s+(?:\([^)]{{0,80}}\)\s*)?{_NAME}"
    rf"|[ +]\s*(?:export\s+)?(?:const|let|var)\s+{_NAME}\s*=\s*(?:async\s*)?(?:\([^)]{{0,200}}\)|\w+)\s*=>"
)
_REQUIRED: Final = lazy_regex(r"\+\s*(?:[\"']?)([A-Za-z0-9@][\w.@/-]{1,100})[\"']?\s*(?:[=<>~!:,\[ ]|v\d|$)")
_NOT_REQUIRED: Final = frozenset(
    {"dependencies", "devDependencies", "name", "version", "require", "module", "python", "requires-python", "go"}
)
_COMMON: Final = frozenset({"main", "run", "test", "init", "self", "constructor", "setup", "default"})


def find_anchors(repair: Repair, root: str) -> tuple[str, ...]:
    """Return the anchors of a fix: files of code before tests, each followed by its names."""
    files = [file for one in repair.files if (file := _relative(one, root)) and not is_document(file)]
    code = [file for file in dict.fromkeys(files) if not is_test_file(file)] or list(dict.fromkeys(files))
    chosen = code[:_MAX_FILES]
    names = dict.fromkeys(one for one in _find_names(repair, root) if one.file in chosen)
    left = [one for one in names if not _is_vague(one.name)][:_MAX_NAMES]
    texts = [text for file in chosen for text in (file, *(one.text for one in left if one.file == file))]
    return tuple(one.text for one in list_anchors(texts))


def _find_names(repair: Repair, root: str) -> Iterator[Anchor]:
    """Yield the function in which the error was, then the names that the lines of the fix define or require."""
    error = repair.error
    yield Anchor(_relative(error.file, root), error.function.rpartition(".")[2])
    file = _relative(repair.files[0], root) if repair.files else ""
    for line in (line[:_MAX_LINE] for line in repair.diff.splitlines()):
        if (header := _HEADER.match(line)) is not None:
            file = _relative(header[1] or header[2], root)
        elif is_manifest(file):
            if (required := _REQUIRED.match(line)) is not None and required[1] not in _NOT_REQUIRED:
                yield Anchor(file, required[1])
        elif (defined := _DEFINED.match(line)) is not None:
            yield Anchor(file, defined[1] or defined[2])


def _relative(file: str, root: str) -> str:
    """Return a path in the project, "" for another one."""
    anchor = parse_anchor(relative_to_project(file, root)) if file else None
    return anchor.file if anchor is not None and not anchor.name else ""


def _is_vague(name: str) -> bool:
    return len(name) < _MIN_NAME or name in _COMMON or name.startswith(("__", "<"))
