"""Net change of several edits."""

from __future__ import annotations

from core.questions.extraction.attempt_fixes import find_net_changes
from core.records.episodes import Action
from core.tasks.changes import compare_texts, format_hunks

FIRST = """def page(items, page, size):
    start = page * size
    return items[start : start + size]


def other():
    pass
"""


def edit(before: str, after: str, file: str = "a.py") -> Action:
    diff = format_hunks(compare_texts(file, before, after))
    return Action(number=1, type="edit", tool="Edit", params=(("file_path", file),), success=True, output=diff)


def pair(old: str, new: str) -> Action:
    params = (("file_path", "a.py"), ("old_string", old), ("new_string", new))
    return Action(number=1, type="edit", tool="Edit", params=params, success=True)


def changed(*edits: Action) -> list[str]:
    return [line for hunk in find_net_changes(edits) for line in hunk.lines if line[0] in "+-"]


def test_a_wrong_edit_that_a_later_one_replaces_is_not_part_of_the_change() -> None:
    wrong = FIRST.replace("items[start :", "items[start - 1 :")
    right = FIRST.replace("page * size", "(page - 1) * size")
    assert changed(edit(FIRST, wrong), edit(wrong, right)) == [
        "-    start = page * size",
        "+    start = (page - 1) * size",
    ]


def test_edits_that_cancel_each_other_change_nothing() -> None:
    wrong = FIRST.replace("pass", "return 1")
    assert changed(edit(FIRST, wrong), edit(wrong, FIRST)) == []


def test_line_numbers_that_earlier_edits_moved_are_followed() -> None:
    longer = "import os\nimport sys\n" + FIRST
    last = longer.replace("pass", "return os.sep")
    assert changed(edit(FIRST, longer), edit(longer, last)) == [
        "+import os",
        "+import sys",
        "-    pass",
        "+    return os.sep",
    ]


def test_edits_of_several_files_are_kept_apart() -> None:
    assert changed(edit("x = 1\n", "x = 2\n", "a.py"), edit("x = 1\n", "x = 3\n", "b.py")) == [
        *("-x = 1", "+x = 2", "-x = 1", "+x = 3")
    ]


def test_edits_without_line_numbers_are_joined_by_their_texts() -> None:
    assert changed(pair("x = 1", "x = 2"), pair("x = 2", "x = 3")) == ["-x = 1", "+x = 3"]
    assert changed(pair("x = 1", "x = 2"), pair("y = 0\nx = 2", "y = 5\nx = 1")) == ["-y = 0", "+y = 5"]


def test_a_file_that_was_created_is_added() -> None:
    assert changed(edit("", "x = 1\n")) == ["+x = 1"]
