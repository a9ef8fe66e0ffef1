"""A vector file returns the written vectors and no others."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths
from core.files.file_access import file_lock
from core.retrieval import embeddings
from core.retrieval.embeddings import VectorFile
from tests.factories import leave_draft

SIZE = 8
FILE = "memory/embeddings/patterns.vec"
HASHES = [sha256(bytes([number])).digest() for number in range(20)]
CODES = np.arange(20 * SIZE, dtype=np.int8).reshape(20, SIZE)


@pytest.fixture
def file(tmp_path: Path) -> VectorFile:
    return VectorFile(ProjectPaths(tmp_path), FILE, "model", SIZE)


def write(file: VectorFile, *numbers: int, wanted: list[bytes] = HASHES) -> None:
    with file.writing(set(wanted)) as append:
        append([HASHES[number] for number in numbers], CODES[list(numbers)])


def numbers(file: VectorFile) -> list[int]:
    """Return the numbers of the stored vectors; checks that each is unchanged."""
    hashes, codes = file.read()
    found = [HASHES.index(hash) for hash in hashes]
    assert codes.dtype == np.int8 and np.array_equal(codes, CODES[found])
    return found


def test_written_vectors_are_read_back(file: VectorFile) -> None:
    assert numbers(file) == []
    write(file, 0, 1)
    write(file, 2)
    assert numbers(file) == [0, 1, 2]


def test_vectors_of_another_model_are_discarded(file: VectorFile, tmp_path: Path) -> None:
    write(file, 0)
    other = VectorFile(ProjectPaths(tmp_path), FILE, "other", SIZE)
    assert numbers(other) == []
    write(other, 1)
    assert (numbers(other), numbers(file)) == ([1], [])


def test_a_torn_end_is_dropped_and_repaired(file: VectorFile) -> None:
    write(file, 0, 1, 2)
    os.truncate(file.path, file.path.stat().st_size - 5)
    assert numbers(file) == [0, 1]
    write(file, 3)
    assert numbers(file) == [0, 1, 3]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_records_are_dropped(file: VectorFile, data: st.DataObject) -> None:
    file.path.unlink(missing_ok=True)
    write(file, *range(6))
    content = bytearray(file.path.read_bytes())
    start = data.draw(st.integers(0, len(content)))
    content[start : start + data.draw(st.integers(0, 60))] = data.draw(st.binary(max_size=60))
    file.path.write_bytes(content)
    stored = numbers(file)
    write(file, 9)
    assert numbers(file) == [*stored, 9]


@pytest.mark.parametrize(
    "content", [b"", b"ralphdeck vectors", b"\x00" * 5000, b"ralphdeck vectors 1 model 8\n" + b"x"]
)
def test_another_file_reads_as_empty_and_is_replaced(content: bytes, file: VectorFile) -> None:
    file.path.parent.mkdir(parents=True)
    file.path.write_bytes(content)
    assert numbers(file) == []
    write(file, 4)
    assert numbers(file) == [4]


def test_a_huge_file_is_not_read(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, *range(20))
    monkeypatch.setattr(embeddings, "MAX_VECTOR_BYTES", 200)
    assert numbers(file) == []


def test_a_file_does_not_grow_over_the_limit(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, 0, 1)
    monkeypatch.setattr(embeddings, "MAX_VECTOR_BYTES", file.path.stat().st_size)
    with pytest.raises(Unwritable, match="the maximum that is read"):
        write(file, 2)
    assert numbers(file) == [0, 1]


def test_links_and_pipes_are_refused(file: VectorFile, tmp_path: Path) -> None:
    file.path.parent.mkdir(parents=True)
    secret = tmp_path / "secret"
    secret.write_text("mine")
    file.path.symlink_to(secret)
    write(file, 0)
    assert (numbers(file), secret.read_text(), file.path.is_symlink()) == ([0], "mine", False)
    file.path.unlink()
    os.mkfifo(file.path)
    assert numbers(file) == []


def test_a_folder_outside_the_project_is_refused(file: VectorFile, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    file.path.parent.parent.mkdir(parents=True)
    file.path.parent.symlink_to(outside)
    assert numbers(file) == []
    with pytest.raises(Unwritable, match="is outside of"):
        write(file, 0)
    assert list(outside.iterdir()) == []


def test_a_linked_folder_inside_the_project_is_refused(file: VectorFile, tmp_path: Path) -> None:
    registry = tmp_path / ".aiwg/ralph/shared/patterns"
    registry.mkdir(parents=True)
    file.path.parent.parent.mkdir(parents=True, exist_ok=True)
    file.path.parent.symlink_to(registry)
    with pytest.raises(Unwritable, match="is a link"):
        write(file, 0)
    assert list(registry.iterdir()) == []


def test_one_process_writes_at_a_time(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "_WAIT_SECONDS", 0.0)
    with file_lock(file.path.with_name("patterns.vec.lock")), pytest.raises(Unwritable, match="another process"):
        write(file, 0)


def test_unused_vectors_are_removed_above_a_quarter(file: VectorFile) -> None:
    write(file, *range(8))
    write(file, 8, wanted=HASHES[2:])
    assert numbers(file) == list(range(9))
    write(file, 9, wanted=HASHES[3:])
    assert numbers(file) == [*range(3, 10)]


def test_leftovers_of_a_killed_writer_are_removed(file: VectorFile) -> None:
    write(file, 0)
    draft = leave_draft(file.path)
    write(file, 1)
    assert not draft.exists() and numbers(file) == [0, 1]


def test_a_full_disk_is_one_error_and_the_file_stays(file: VectorFile, monkeypatch: pytest.MonkeyPatch) -> None:
    write(file, 0)

    def full(_handle: int, _data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(embeddings, "append_bytes", full)
    with pytest.raises(Unwritable, match="No space left"):
        write(file, 1)
    assert numbers(file) == [0]


def test_an_error_of_the_caller_is_not_converted(file: VectorFile) -> None:
    def fail(append: object) -> NDArray[np.int8]:
        raise BrokenPipeError("an error of the caller")

    with pytest.raises(BrokenPipeError), file.writing(set()) as append:
        fail(append)
