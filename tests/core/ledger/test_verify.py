"""Changed, removed, inserted and moved lines of the decision log are detected."""

from __future__ import annotations

import json
from collections.abc import Callable
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.base.errors import Unwritable
from core.config.paths import ProjectPaths
from core.config.settings import Settings
from core.ledger.ledger import Ledger
from core.ledger.verify import Verification, verify, verify_ledger
from core.project.index import Library
from core.records.decisions import Decision, Verb
from core.storage.hash_chain import Place, anchor_of, linked, read_anchor
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
    more, end = linked([document(number) for number in range(older, older + newer)], place)
    return [line + b"\n" for line in (*lines, *more)], end


@settings(max_examples=50, deadline=None)
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
    library = Library(paths, Settings(), clock=lambda: CURATION_NOW, cache=False)

    def found() -> list[tuple[str, str]]:
        return [(one.pointer, one.message) for one in library.apply([paths.ledger])[0].findings]

    library.load()
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
    (found,) = Library(paths, Settings(), clock=lambda: CURATION_NOW, cache=False).load().findings
    assert (found.pointer, found.message) == ("line 1", "4 lines after it are missing")


def test_an_unreadable_ledger_is_not_verified(paths: ProjectPaths, ledger: Ledger) -> None:
    paths.ledger.unlink()
    paths.ledger.mkdir()
    with pytest.raises(Unwritable, match="cannot read"):
        verify_ledger(paths)
