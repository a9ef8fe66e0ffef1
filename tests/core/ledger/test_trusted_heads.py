"""A head that is kept elsewhere finds the editor who computes the whole chain anew."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import pytest
from msgspec.structs import replace

from core.base.errors import BadInput
from core.config.paths import ProjectPaths
from core.ledger.ledger import Ledger
from core.ledger.verify import Head, check_project, read_heads, verify_ledger
from core.records.decisions import Decision, Verb
from core.storage.hash_chain import Chain, Place, linked, unlinked, write_anchor
from tests.factories import CURATION_NOW

AT = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)


def made(number: int) -> Decision:
    return Decision(
        id=f"d{number}", at=CURATION_NOW, by="alice", verb=Verb.NOTE, subject="p", after={"text": f"note {number}"}
    )


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> ProjectPaths:
    found = ProjectPaths(tmp_path_factory.mktemp("project"))
    ledger = Ledger(found)
    for number in range(1, 6):
        ledger.append(made(number))
    return found


def head_of(paths: ProjectPaths) -> Head:
    end = verify_ledger(paths).end
    return Head(kind="ralphdeck-log-head", project="0123456789abcdef", lines=end.line, hash=end.chain, at=AT)


def compute_anew(paths: ProjectPaths, documents: list[bytes]) -> None:
    """What an editor does who knows the format: every hash and the anchor as if nothing had happened."""
    lines, end = linked(documents, Chain().place)
    paths.ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    write_anchor(paths.ledger, end)


def test_a_recomputed_chain_is_detected_only_with_a_head(paths: ProjectPaths) -> None:
    head = head_of(paths)
    documents = [unlinked(line) for line in paths.ledger.read_bytes().splitlines()]
    compute_anew(paths, [document.replace(b"note 2", b"note X") for document in documents])
    assert verify_ledger(paths).problems == (), "the chain has no key: this edit leaves no trace in the project"
    (problem,) = verify_ledger(paths, [head]).problems
    assert (problem.line, problem.what) == (
        5,
        "the head of 2026-05-03T12:00:00.000Z does not fit: lines up to this one were rewritten",
    )


def test_lines_removed_with_the_anchor_are_detected_only_with_a_head(paths: ProjectPaths) -> None:
    head = head_of(paths)
    compute_anew(paths, [unlinked(line) for line in paths.ledger.read_bytes().splitlines()[:3]])
    assert verify_ledger(paths).problems == ()
    (problem,) = verify_ledger(paths, [head]).problems
    assert (problem.line, problem.what) == (
        3,
        "the head of 2026-05-03T12:00:00.000Z was taken at line 5: 2 lines after this one are missing",
    )
    paths.ledger.unlink()
    assert verify_ledger(paths, [head]).problems


def test_a_head_matches_every_continuation_of_the_log(paths: ProjectPaths) -> None:
    heads = [head_of(paths)]
    Ledger(paths).append(made(6))
    heads.append(head_of(paths))
    Ledger(paths).append(made(7))
    found = verify_ledger(paths, heads)
    assert found.problems == () and found.summary.endswith("hash chain intact; contains 2 heads saved elsewhere")
    lines = paths.ledger.read_bytes().splitlines()
    compute_anew(paths, [unlinked(line) for line in lines[:6]] + [b'{"kind":"note"}'])
    assert verify_ledger(paths, heads).problems == (), "what came after the last head is not protected by it"
    assert len(verify_ledger(paths, [*heads, replace(heads[0], lines=4)]).problems) == 1


def test_a_head_of_an_empty_log_matches_every_log(paths: ProjectPaths) -> None:
    nothing = head_of(ProjectPaths(paths.project / "elsewhere"))
    assert nothing.lines == 0 and verify_ledger(paths, [nothing]).problems == ()


def test_a_head_is_one_line_of_json_that_reads_back(paths: ProjectPaths) -> None:
    head = head_of(paths)
    assert head.encoded().count(b"\n") == 1
    assert set(msgspec.json.decode(head.encoded())) == {"kind", "project", "lines", "hash", "at"}
    assert read_heads(head.encoded(), "f") == (head,) == read_heads(msgspec.json.format(head.encoded()), "f")
    assert read_heads(head.encoded() * 2 + b"\n", "f") == (head, head)
    assert head.place == Place(5, head.hash)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"[]",
        b"null",
        b'{"kind":"other"}',
        b'{"lines":1,"hash":"%b","at":"2026-05-03T12:00:00Z"}' % (b"0" * 64),
        b'{"kind":"ralphdeck-log-head","lines":1,"hash":"00","at":"2026-05-03T12:00:00Z"}',
        b'{"kind":"ralphdeck-log-head","lines":-1,"hash":"%b","at":"2026-05-03T12:00:00Z"}' % (b"0" * 64),
        b'{"kind":"ralphdeck-log-head","lines":1,"hash":"%b","at":"2026-05-03"}' % (b"0" * 64),
        b"\xff\x00",
        b"[" * 100_000,
    ],
)
def test_an_invalid_chain_head_is_refused(data: bytes) -> None:
    with pytest.raises(BadInput, match=r"f (is empty|line 1 is not a head)"):
        read_heads(data, "f")


def test_the_head_of_another_project_is_refused(paths: ProjectPaths) -> None:
    head = head_of(paths)
    check_project([head], head.project, "f")
    check_project([head], "", "f")
    check_project([replace(head, project="")], "f" * 16, "f")
    with pytest.raises(BadInput, match="f is the head of project 0123456789abcdef, and this is project ffff"):
        check_project([head], "f" * 16, "f")
