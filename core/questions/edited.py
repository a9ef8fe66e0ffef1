"""Lessons edited in files of agents (docs/instructions.md#edited-lessons)."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec.structs import replace

from core.base.errors import BadInput
from core.base.text import plural, visible_line
from core.decisions import commands
from core.files.managed_text import text_digest
from core.index.anchors import find_doubtful, find_stale
from core.index.compiled import (
    KEEP,
    RESTORE,
    TAKE,
    TARGETS,
    PresentFile,
    check_target,
    is_edited,
    make_entry,
    read_present,
    remove_escapes,
    render_target,
    select_lessons,
)
from core.index.review_items import EDITED, EditedFile
from core.questions.answer import Answer, no, yes
from core.records.decisions import edited_file_question_id

if TYPE_CHECKING:
    from core.base.settings import Settings
    from core.index.project_state import ProjectState
    from core.index.review_items import ReviewItem
    from core.learning.scoreboard import Scoreboard
    from core.questions.asking import Asker
    from core.records.patterns import Pattern
    from core.records.snapshot import Snapshot

_MAX_DIFF: Final = 200  # lines
_MAX_PLACES: Final = 2000  # characters of a text in which the place of an edit is looked for
Edit: TypeAlias = tuple[str, str, str]  # ID of a pattern, its text before and after
_TEXTS: Final = (
    *("title", "description", "error_message", "error_pattern", "better_alternative", "use_case", "steps"),
    *("diff_pattern", "template_code"),
)
"""Fields of which a line of an entry may be the text, or a line of it."""


def find_edited_files(
    project: Path, snapshot: Snapshot, board: Scoreboard, settings: Settings
) -> tuple[EditedFile, ...]:
    """Return agents' files with edited lessons that no answer settled."""
    answered = snapshot.curation.dismissed
    if not settings.compile.ask_about_edits:
        return ()
    edited = [target for target in TARGETS if _has_edit(target, project, answered)]
    if not edited:  # nearly always, and all that this costs then
        return ()
    stale = find_doubtful(find_stale(snapshot), snapshot.curation) if settings.review.check_anchors else ()
    selection = select_lessons(snapshot.patterns, board, settings, settings.compile.max_tokens, stale)
    files = (file for target in edited for file in check_target(target, selection, project, answered))
    edited_files: dict[str, EditedFile] = {}
    for file in files:
        if file.status != "edited" or file.may_replace or file.present is None:
            continue
        edits, problem = _find_text_edits(file.present.entries, snapshot.patterns, settings.injection.max_field_chars)
        if edits and file.present.frame != PresentFile(file.file.text, "", b"").frame:
            edits, problem = (), "text around the lessons was edited, too, and would be lost; move it to another place"
        edited_files[file.path] = EditedFile(
            path=file.path,
            digest=text_digest(file.present.text),
            diff=_difference(file.path, file.file.text, file.present.text),
            edits=edits,
            problem=problem,
        )
    return tuple(edited_files.values())


def _has_edit(target: str, project: Path, answered: Collection[str]) -> bool:
    for file in render_target(target, (), project):
        try:
            present = read_present(file, project)
        except BadInput:
            continue
        if present is not None and is_edited(file.path, present, answered):
            return True
    return False


def _difference(path: str, before: str, after: str) -> str:
    old, new = (text.replace("\r", "").strip("\n").split("\n") for text in (before, after))
    diff = list(difflib.unified_diff(old, new, f"{path} (approved)", path, lineterm="", n=1))
    more = [f"… {len(diff) - _MAX_DIFF:,} more lines"] if len(diff) > _MAX_DIFF else []
    return "\n".join([*diff[:_MAX_DIFF], *more])


def _find_text_edits(
    entries: Mapping[str, str], patterns: Mapping[str, Pattern], limit: int
) -> tuple[tuple[Edit, ...], str]:
    """Return the edits as changes of texts of patterns, or why they are none."""
    edits: list[Edit] = []
    for id, text in entries.items():
        pattern, lines = patterns.get(id), text.split("\n")
        if pattern is None or len(lines) != len(_lines_of(pattern, limit)):
            return (), f"lines of {visible_line(id, 80)} were added or removed; edit the pattern instead"
        for number, line in enumerate(lines):
            wanted = _lines_of(pattern, limit)
            if remove_escapes(line) == remove_escapes(wanted[number]):
                continue
            edit = _find_text_edit(pattern, wanted, lines, number, limit)
            if edit is None:
                return (), f"a changed line of {visible_line(id, 80)} is not one text; edit the pattern instead"
            edits.append(edit)
            pattern = _with_text(pattern, *edit[1:])
    return tuple(edits), "" if edits else "no lesson was edited, but the text around them"


def _lines_of(pattern: Pattern, limit: int) -> list[str]:
    return make_entry(pattern, limit).text.split("\n")


def _find_text_edit(
    pattern: Pattern, wanted: Sequence[str], lines: Sequence[str], number: int, limit: int
) -> Edit | None:
    """Return the text edit that gives this line and no other that is not in the file."""
    allowed = [{remove_escapes(one), remove_escapes(other)} for one, other in zip(wanted, lines, strict=True)]
    allowed[number] = {remove_escapes(lines[number])}
    old_part, new_part = _changed_parts(wanted[number], lines[number])
    for old in dict.fromkeys(text for field in _TEXTS for text in _texts_of(pattern, field)):
        for new in _list_new_texts(old, old_part, new_part):
            rendered = _lines_of(_with_text(pattern, old, new), limit)
            are_allowed = (remove_escapes(line) in texts for line, texts in zip(rendered, allowed, strict=False))
            if len(rendered) == len(allowed) and all(are_allowed):
                return pattern.id, old, new
    return None


def _changed_parts(before: str, after: str) -> tuple[str, str]:
    """Return the parts in which two lines differ."""
    start = _count_equal(before, after)
    end = _count_equal(before[start:][::-1], after[start:][::-1])
    return before[start : len(before) - end], after[start : len(after) - end]


def _count_equal(before: str, after: str) -> int:
    """Return the number of characters with which both texts begin."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(before), len(after)))


def _list_new_texts(old: str, old_part: str, new_part: str) -> Iterator[str]:
    """Yield the texts with the changed part, also without the file's backslashes."""
    parts = dict.fromkeys([(old_part, new_part), (remove_escapes(old_part), remove_escapes(new_part))])
    for before, after in parts:
        start = old.find(before)
        while 0 <= start <= _MAX_PLACES:
            yield f"{old[:start]}{after}{old[start + len(before) :]}"
            start = old.find(before, start + 1) if start < len(old) else -1


def _texts_of(pattern: Pattern, field: str) -> tuple[str, ...]:
    value = getattr(pattern, field)
    return value if isinstance(value, tuple) else (value,)


def _with_text(pattern: Pattern, old: str, new: str) -> Pattern:
    """Return the pattern with another text wherever it has this one."""
    changes: dict[str, object] = {}
    for field in _TEXTS:
        texts = tuple(new if text == old else text for text in _texts_of(pattern, field))
        changes[field] = texts if isinstance(getattr(pattern, field), tuple) else texts[0]
    return replace(pattern, **changes)


def ask_edited(asker: Asker) -> Iterator[ReviewItem]:
    """Ask about files in which lessons were edited."""
    for file in asker.records.edited:
        path = visible_line(file.path, 120)
        counts = [f"{sign}{sum(line[:1] == sign for line in file.diff.split(chr(10))[2:])}" for sign in "+-"]
        yield asker.item(
            EDITED,
            file.path,
            question="Someone edited the lessons in {}. Take the edit over?",
            name=path,
            this=path,
            reason=f"{' '.join(counts)} lines; `ralphdeck compile` does not write the file until you answer",
            place="",
            chars=len(file.diff),
            edited=file,
        )


def answer_edited(item: ReviewItem, state: ProjectState) -> Iterator[Answer]:
    """Yield yes (change the lessons), no (leave the file alone), and restore."""
    edited = item.edited
    assert edited is not None
    name = visible_line(edited.path, 120)
    texts: dict[str, list[tuple[str, str]]] = {}
    for id, before, after in edited.edits:
        texts.setdefault(id, []).append((before, after))
    count = plural(len(texts), "lesson")
    taken = commands.Dismiss(
        key=edited_file_question_id(edited.path, edited.digest, answer=TAKE),
        summary=f"took over {count} from {name}",
        about=name,
    )
    edits = tuple(commands.TextEdit(id, tuple(changes)) for id, changes in texts.items())
    take = commands.EditTexts(edits=edits, answer=taken)
    yield yes("take over", f"changes {count} to the edited text, which you approve", take, why_not=edited.problem)
    leave = commands.Dismiss(
        key=edited_file_question_id(edited.path, edited.digest, answer=KEEP),
        summary=f"left {name} as it was edited",
        about=name,
    )
    yield no("leave", "`ralphdeck compile` does not change this file any more", leave, matters=False)
    restore = commands.Dismiss(
        key=edited_file_question_id(edited.path, edited.digest, answer=RESTORE),
        summary=f"the next `ralphdeck compile` restores the lessons in {name}",
        about=name,
    )
    effect = "the next `ralphdeck compile` restores the approved text"
    yield Answer("restore_text", "restore", effect, restore, matters=False)
