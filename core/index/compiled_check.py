"""Compares the files with lessons with the approved patterns (docs/compile.md#check)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from core.base.errors import BadInput
from core.base.text import visible_line
from core.files.managed_text import text_digest
from core.index.compiled import CompiledFile, PresentFile, Selection, read_present, remove_escapes, render_target
from core.records.decisions import EDIT_ANSWERS, edited_file_question_id

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
    """Compare the files of a target with the approved patterns; `answered` are the questions that are dismissed.

    Only if it `is_exact`, the files must contain the patterns that a new run would choose, in its order. Otherwise any
    approved patterns in any order are current, unless others fit into the budget, because evidence changes every day.
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
    """Compare the files of a target as `check_target` does; if one is not current, with the newest choice and order.

    So nothing is written that a check calls current, unless `force` asks for it.
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
    """Return whether the lessons in a file are neither what was written nor an edit that was taken over."""
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
