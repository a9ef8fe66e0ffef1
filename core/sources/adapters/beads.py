"""Adapter of beads: closed issues and memories; docs/adapter-files.md#beads."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from core.sources.adapters.contract import Adapter
from core.sources.adapters.lessons import make_lesson
from core.sources.adapters.runner_files import MAX_LABEL, cut

if TYPE_CHECKING:
    from core.records.loops import Loop
    from core.records.reflections import Lesson
    from core.sources.adapters.contract import Moment
    from core.sources.adapters.folders import Folders
    from core.sources.adapters.runner_files import RunnerFiles

MAX_BYTES: Final = 64 << 20
MAX_ISSUES: Final = 50  # in the facts of one session
_FOLDER: Final = ".beads"
_FILES: Final = ("issues.jsonl", "beads.jsonl")  # the second one in old versions


class Record(Struct, gc=False):
    """One line of an export: an issue, or a memory with `key` and `value`."""

    kind: str = msgspec.field(default="issue", name="_type")
    id: str = ""
    title: str = ""
    status: str = ""
    close_reason: str | None = None
    closed_by_session: str | None = None
    key: str = ""
    value: str = ""


class BeadsAdapter(Adapter):
    """Reads the export of beads; its issues are tasks, not loops."""

    name = "beads"
    title = "beads"
    versions = "0.20 to 1.2"
    contains = "issues that a session closed, memories"
    lacks = "loops, iterations, errors, tokens, cost"

    def fingerprint(self, folders: Folders) -> tuple[str, ...]:
        return tuple(str(path) for path in _exports(folders.roots[:3]) if path.is_file())

    def loops(self, files: RunnerFiles, moment: Moment) -> Iterable[Loop]:
        return ()

    def lessons(self, files: RunnerFiles) -> Iterator[Lesson]:
        for path in _exports(files.folders.roots):
            for number, record in _read(files, path, b'"memory"'):
                text = cut(record.value)
                if record.kind == "memory" and text:
                    yield make_lesson("beads", text, files.shown(path), number, title=cut(record.key, MAX_LABEL))


def closed_issues(files: RunnerFiles, session_ids: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield label and text of each issue that a session closed, as facts of its loop."""
    count = 0
    for path in _exports(files.folders.roots) if session_ids else ():
        for _, record in _read(files, path, b'"closed_by_session"'):
            if record.closed_by_session in session_ids and count < MAX_ISSUES:
                count += 1
                reason = cut(record.close_reason, MAX_LABEL)
                text = f"{cut(record.title, MAX_LABEL)} ({reason})" if reason else cut(record.title, MAX_LABEL)
                yield f"closed issue {cut(record.id, MAX_LABEL)}", text


def _exports(roots: Iterable[Path]) -> Iterator[Path]:
    return (root / _FOLDER / name for root in roots for name in _FILES)


def _read(files: RunnerFiles, path: Path, mark: bytes) -> Iterator[tuple[int, Record]]:
    """Yield number and content of lines that contain `mark`; skip undecodable ones."""
    if not files.exists(path):
        return
    decoder = msgspec.json.Decoder(Record)
    for number, line in enumerate(files.text(path, MAX_BYTES).encode("utf-8", "replace").split(b"\n"), start=1):
        if mark in line:
            try:
                yield number, decoder.decode(line)
            except (msgspec.MsgspecError, ValueError, RecursionError):
                continue
