"""Drafts of processes that were killed are removed, others stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from core.storage.atomic_write import put, rewrite, take_theirs, write_file
from core.storage.drafts import make_draft_path, remove_drafts
from tests.factories import leave_draft


def test_only_old_drafts_of_dead_processes_are_removed(tmp_path: Path) -> None:
    left = leave_draft(tmp_path / "a.json")
    young = leave_draft(tmp_path / "b.json")
    os.utime(young, (time.time(), time.time()))
    own = make_draft_path(tmp_path / "c.json")
    others = [
        tmp_path / name for name in ("d.json.tmp-4194305-0123abcd", ".d.json.tmp-4194305-abcd", f"{left.name}.bak")
    ]
    for path in (own, *others):
        path.touch()
        os.utime(path, (0, 0))
    folder = left.with_name(left.name.replace("a.json", "e.json"))
    folder.mkdir()
    remove_drafts(tmp_path)
    assert {*tmp_path.iterdir()} == {young, own, *others, folder}


@pytest.mark.parametrize("is_new", [True, False])
def test_each_write_removes_the_drafts_in_its_folder(tmp_path: Path, is_new: bool) -> None:
    file = tmp_path / "a.json"
    if not is_new:
        file.write_bytes(b"1")
    left = leave_draft(tmp_path / "b.json")
    rewrite(file, lambda _: b"2", merge=take_theirs, retry_seconds=())
    assert not left.exists()
    left = leave_draft(tmp_path / "b.json")
    put(file, b"3")
    assert not left.exists()
    left = leave_draft(tmp_path / "b.json")
    write_file(file, b"4")
    assert not left.exists() and file.read_bytes() == b"4"
