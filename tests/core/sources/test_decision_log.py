"""Changed, removed, inserted and moved lines of the decision log are detected."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.errors import BadInput, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.hash_chain import Chain, Place, anchor_of, link_lines, read_anchor, strip_link, write_anchor
from core.index.refresh import Index
from core.records.decisions import Decision, Verb
from core.sources.ledger import Head, Ledger, Verification, check_project, read_heads, verify, verify_ledger
from tests.factories import CURATION_NOW

EMPTY = Place(0, sha256().hexdigest())


def made(number: int) -> Decision:
    return Decision(
        id=f"d{number}", at=CURATION_NOW, by="alice", verb=Verb.NOTE, subject="p", after={"text": f"note {number}"}
    )


def document(number: int) -> bytes:
    return json.dumps({"kind": "note", "text": f"note {number}"}).encode()


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> ProjectPaths:
    return ProjectPaths(tmp_path_factory.mktemp("project"))


@pytest.fixture
def ledger(paths: ProjectPaths) -> Ledger:
    found = Ledger(paths)
    for number in range(1, 5):
        found.append(made(number))
    return found


def problems_of(verification: Verification) -> list[tuple[int, str]]:
    return [(problem.line, problem.what) for problem in verification.problems]


def edit(paths: ProjectPaths, change: Callable[[list[bytes]], list[bytes]]) -> None:
    lines = paths.ledger.read_bytes().splitlines(keepends=True)
    paths.ledger.write_bytes(b"".join(change(lines)))


def written(older: int, newer: int) -> tuple[list[bytes], Place]:
    """Lines of an older version, and newer ones that seal them; and the end."""
    lines = [document(number) for number in range(older)]
    place = Place(older, sha256(b"".join(line + b"\n" for line in lines)).hexdigest())
    more, end = link_lines([document(number) for number in range(older, older + newer)], place)
    return [line + b"\n" for line in (*lines, *more)], end


@given(data=st.data())
def test_any_single_change_is_found(data: st.DataObject) -> None:
    lines, end = written(data.draw(st.integers(0, 3)), data.draw(st.integers(1, 4)))
    whole = b"".join(lines)
    assert verify(whole, end).problems == ()
    at = st.integers(0, len(lines) - 1)
    one, two = data.draw(at), data.draw(at)
    match data.draw(st.sampled_from(["byte", "remove", "swap", "insert", "copy", "cut"])):
        case "byte":
            place = data.draw(st.integers(0, len(whole) - 1))
            changed = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
        case "remove":
            changed = b"".join(lines[:one] + lines[one + 1 :])
        case "swap":
            lines[one], lines[two] = lines[two], lines[one]
            changed = b"".join(lines)
        case "insert":
            changed = b"".join([*lines[:one], data.draw(st.sampled_from([b"\n", b"{}\n"])), *lines[one:]])
        case "copy":
            changed = b"".join([*lines[:one], lines[two], *lines[one:]])
        case _:
            changed = whole[: data.draw(st.integers(0, len(whole) - 1))]
    if changed != whole:
        assert verify(changed, end).problems


def test_an_untouched_ledger_has_no_breaks(paths: ProjectPaths, ledger: Ledger) -> None:
    found = verify_ledger(paths)
    assert (found.lines, found.linked, found.decisions, found.problems) == (4, 4, 4, ())
    assert found.summary == "4 lines, 4 decisions: hash chain intact"
    assert read_anchor(paths.ledger) is not None


def test_the_first_decision_covers_lines_of_older_versions(paths: ProjectPaths) -> None:
    assert verify_ledger(paths).summary == "0 lines, 0 decisions: hash chain intact"
    paths.curation.mkdir(parents=True)
    paths.ledger.write_bytes(document(1) + b"\n" + document(2) + b"\n")
    assert "no hash chain yet" in verify_ledger(paths).summary
    Ledger(paths).append(made(3))
    assert (
        verify_ledger(paths).summary
        == "3 lines, 1 decision: hash chain intact; lines before 3 are older and have no hash"
    )
    edit(paths, lambda lines: [lines[0].replace(b"note 1", b"note 9"), *lines[1:]])
    assert problems_of(verify_ledger(paths)) == [(1, "one of lines 1 to 2 was changed after it was written")]


def test_breaks_have_lines_and_reasons(paths: ProjectPaths, ledger: Ledger) -> None:
    whole = paths.ledger.read_bytes()

    def after(change: Callable[[list[bytes]], list[bytes]]) -> list[tuple[int, str]]:
        paths.ledger.write_bytes(whole)
        edit(paths, change)
        return problems_of(verify_ledger(paths))

    changed = "was changed after it was written"
    assert after(lambda lines: [lines[0], lines[1].replace(b"note 2", b"note 7"), *lines[2:]]) == [(2, changed)]
    assert after(lambda lines: [lines[0], *lines[3:]]) == [(2, "2 lines before it are missing")]
    assert after(lambda lines: lines[:2]) == [(2, "2 lines after it are missing")]
    assert after(lambda lines: []) == [(1, "4 lines after it are missing")]
    assert after(lambda lines: [*lines[:2], b'{"kind":"x"}\n', *lines[2:]])[0] == (
        3,
        "was not written by this program, or by an older version of it",
    )
    assert after(lambda lines: [lines[1], lines[0], *lines[2:]]) == [
        (1, "1 line before it is missing"),
        (2, "was written as line 1: moved or copied here, or lines were inserted before"),
        (3, "1 line before it is missing"),
    ]
    assert after(lambda lines: [*lines[:3], lines[3].replace(b"note 4", b"note 8")]) == [(4, f"{changed}, or replaced")]


def test_later_decisions_do_not_hide_breaks(paths: ProjectPaths, ledger: Ledger) -> None:
    edit(paths, lambda lines: [*lines[:3], lines[3].replace(b"note 4", b"note 8")])
    Ledger(paths).append(made(5))
    assert problems_of(verify_ledger(paths)) == [(4, "was changed after it was written")]
    edit(paths, lambda lines: lines[:3])
    Ledger(paths).append(made(6))
    Ledger(paths).append(made(7))
    assert problems_of(verify_ledger(paths)) == [(4, "2 lines before it are missing")]
    assert [one.id for one in Ledger(paths).decisions()] == ["d1", "d2", "d3", "d6", "d7"]


def test_two_alternating_writers_make_one_chain(paths: ProjectPaths, ledger: Ledger) -> None:
    other = Ledger(paths)
    for number in range(10, 14):
        (ledger if number % 2 else other).append(made(number), made(number * 10))
    assert verify_ledger(paths).summary == "12 lines, 12 decisions: hash chain intact"


def test_a_crash_before_the_anchor_is_not_a_break(paths: ProjectPaths, ledger: Ledger) -> None:
    anchor = anchor_of(paths.ledger).read_bytes()
    ledger.append(made(5), made(6))
    anchor_of(paths.ledger).write_bytes(anchor)
    assert verify_ledger(paths).problems == ()
    Ledger(paths).append(made(7))
    assert verify_ledger(paths).problems == ()


@pytest.mark.parametrize("rest", [b'{"kind":', b'{"kind":"note"}'])
def test_an_incomplete_line_is_repaired_without_a_break(paths: ProjectPaths, ledger: Ledger, rest: bytes) -> None:
    with paths.ledger.open("ab") as file:
        file.write(rest)
    assert verify_ledger(paths).problems == ()
    Ledger(paths).append(made(5))
    foreign = [(5, "was not written by this program, or by an older version of it")]
    assert problems_of(verify_ledger(paths)) == (foreign if rest.endswith(b"}") else [])


def test_lines_without_a_hash_are_reported_once(paths: ProjectPaths, ledger: Ledger) -> None:
    with paths.ledger.open("ab") as file:
        file.write(document(5) + b"\n")
    ledger.append(made(6))
    foreign = (5, "was not written by this program, or by an older version of it")
    assert problems_of(verify_ledger(paths)) == [foreign]
    edit(paths, lambda lines: [*lines[:4], document(9) + b"\n", lines[5]])
    assert problems_of(verify_ledger(paths)) == [(4, "one of lines 4 to 5 was changed after it was written"), foreign]


@pytest.mark.parametrize(
    "content",
    [None, b"", b"{", b'[1,"x"] 2', b'{"line":3}', b"\xff", b'[4,"a\\"b"]', b'[4,"' + b"a" * 64 + b'\\n"]',
     b'[-1,"' + b"a" * 64 + b'"]', b'[999999999999,"' + b"a" * 64 + b'"]'],
)  # fmt: skip
def test_a_missing_anchor_is_reported(paths: ProjectPaths, ledger: Ledger, content: bytes | None) -> None:
    anchor_of(paths.ledger).unlink()
    if content is not None:
        anchor_of(paths.ledger).write_bytes(content)
    assert problems_of(verify_ledger(paths)) == [(4, "the anchor is missing: lines after it may be missing")]
    ledger.append(made(5))
    assert problems_of(verify_ledger(paths)) == [
        (5, "reports that the anchor was missing: lines before it may be missing")
    ]
    assert [one.id for one in Ledger(paths).decisions()] == ["d1", "d2", "d3", "d4", "d5"]


@pytest.mark.parametrize(
    ("data", "line"), [(b'{"kind":"note"}\nnoise \x93\n', 2), (b"\x93noise\n\n[]\n", 1), (b"\x93noise", 1)]
)
def test_lines_of_other_programs_break_the_chain(data: bytes, line: int) -> None:
    assert problems_of(verify(data, None))[0][0] == line
    assert "intact" not in verify(data, None).summary


def test_snapshots_report_breaks_while_the_ledger_grows(paths: ProjectPaths, ledger: Ledger) -> None:
    index = Index(paths, Settings(), clock=lambda: CURATION_NOW, is_kept=False)

    def found() -> list[tuple[str, str]]:
        return [(one.pointer, one.message) for one in index.refresh([paths.ledger])[0].findings]

    index.load()
    assert found() == []
    ledger.append(made(5), made(6))
    assert found() == []
    whole = paths.ledger.read_bytes()
    edit(paths, lambda lines: [lines[0], lines[1].replace(b"note 2", b"note 7"), *lines[2:]])
    changed = ("line 2", "was changed after it was written")
    assert found() == [changed]
    ledger.append(made(7))
    assert found() == [changed]
    edit(paths, lambda lines: lines[:-1])
    assert found() == [changed, ("line 6", "1 line after it is missing")]
    paths.ledger.write_bytes(whole)
    anchor_of(paths.ledger).unlink()
    assert found() == [("line 6", "the anchor is missing: lines after it may be missing")]
    paths.ledger.write_bytes(document(1) + b"\n")
    assert found() == []  # an older version knew no chain


def test_missing_lines_are_reported_even_in_an_empty_ledger(paths: ProjectPaths, ledger: Ledger) -> None:
    paths.ledger.unlink()
    (found,) = Index(paths, Settings(), clock=lambda: CURATION_NOW, is_kept=False).load().findings
    assert (found.pointer, found.message) == ("line 1", "4 lines after it are missing")


def test_an_unreadable_ledger_is_not_verified(paths: ProjectPaths, ledger: Ledger) -> None:
    paths.ledger.unlink()
    paths.ledger.mkdir()
    with pytest.raises(Unwritable, match="cannot read"):
        verify_ledger(paths)


AT = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)


@pytest.fixture
def logged_paths(tmp_path_factory: pytest.TempPathFactory) -> ProjectPaths:
    found = ProjectPaths(tmp_path_factory.mktemp("project"))
    ledger = Ledger(found)
    for number in range(1, 6):
        ledger.append(made(number))
    return found


def head_of(logged_paths: ProjectPaths) -> Head:
    end = verify_ledger(logged_paths).end
    return Head(kind="ralphdeck-log-head", project="0123456789abcdef", lines=end.line, hash=end.chain, at=AT)


def compute_anew(logged_paths: ProjectPaths, documents: list[bytes]) -> None:
    """What an editor does who knows the format: every hash and the anchor as if nothing had happened."""
    lines, end = link_lines(documents, Chain().place)
    logged_paths.ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    write_anchor(logged_paths.ledger, end)


def test_a_recomputed_chain_is_detected_only_with_a_head(logged_paths: ProjectPaths) -> None:
    head = head_of(logged_paths)
    documents = [strip_link(line) for line in logged_paths.ledger.read_bytes().splitlines()]
    compute_anew(logged_paths, [document.replace(b"note 2", b"note X") for document in documents])
    assert verify_ledger(logged_paths).problems == (), "the chain has no key: this edit leaves no trace in the project"
    (problem,) = verify_ledger(logged_paths, [head]).problems
    assert (problem.line, problem.what) == (
        5,
        "the head of 2026-05-03T12:00:00.000Z does not fit: lines up to this one were rewritten",
    )


def test_lines_removed_with_the_anchor_are_detected_only_with_a_head(logged_paths: ProjectPaths) -> None:
    head = head_of(logged_paths)
    compute_anew(logged_paths, [strip_link(line) for line in logged_paths.ledger.read_bytes().splitlines()[:3]])
    assert verify_ledger(logged_paths).problems == ()
    (problem,) = verify_ledger(logged_paths, [head]).problems
    assert (problem.line, problem.what) == (
        3,
        "the head of 2026-05-03T12:00:00.000Z was taken at line 5: 2 lines after this one are missing",
    )
    logged_paths.ledger.unlink()
    assert verify_ledger(logged_paths, [head]).problems


def test_a_head_matches_every_continuation_of_the_log(logged_paths: ProjectPaths) -> None:
    heads = [head_of(logged_paths)]
    Ledger(logged_paths).append(made(6))
    heads.append(head_of(logged_paths))
    Ledger(logged_paths).append(made(7))
    found = verify_ledger(logged_paths, heads)
    assert found.problems == () and found.summary.endswith("hash chain intact; contains 2 heads saved elsewhere")
    lines = logged_paths.ledger.read_bytes().splitlines()
    compute_anew(logged_paths, [strip_link(line) for line in lines[:6]] + [b'{"kind":"note"}'])
    assert verify_ledger(logged_paths, heads).problems == (), "what came after the last head is not protected by it"
    assert len(verify_ledger(logged_paths, [*heads, replace(heads[0], lines=4)]).problems) == 1


def test_a_head_of_an_empty_log_matches_every_log(logged_paths: ProjectPaths) -> None:
    nothing = head_of(ProjectPaths(logged_paths.project / "elsewhere"))
    assert nothing.lines == 0 and verify_ledger(logged_paths, [nothing]).problems == ()


def test_a_head_is_one_line_of_json_that_reads_back(logged_paths: ProjectPaths) -> None:
    head = head_of(logged_paths)
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


def test_the_head_of_another_project_is_refused(logged_paths: ProjectPaths) -> None:
    head = head_of(logged_paths)
    check_project([head], head.project, "f")
    check_project([head], "", "f")
    check_project([replace(head, project="")], "f" * 16, "f")
    with pytest.raises(BadInput, match="f is the head of project 0123456789abcdef, and this is project ffff"):
        check_project([head], "f" * 16, "f")
