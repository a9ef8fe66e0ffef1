"""The decision log: appended, read back, verified by its hash chain, and folded into a state."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.base.errors import BadInput, UnknownRecord, Unwritable
from core.base.paths import ProjectPaths
from core.base.settings import Settings
from core.files.file_reader import MAX_PATTERN_BYTES
from core.files.hash_chain import Chain, Place, anchor_of, link_lines, strip_link, write_anchor
from core.index.refresh import Index
from core.records.decisions import CurationState, Decision, Effect, Verb
from core.records.patterns import Maturity
from core.sources.fold import fold
from core.sources.ledger import (
    DecisionLog,
    Head,
    Ledger,
    Verification,
    check_project,
    read_heads,
    verify,
    verify_ledger,
)
from tests.factories import CURATION_NOW, PATTERN_FILE, read_decisions


def made(identifier: str, **changes: Any) -> Decision:
    values: dict[str, Any] = {
        "id": identifier,
        "at": CURATION_NOW,
        "by": "alice",
        "verb": Verb.PROMOTE,
        "subject": "pat-error-a-001",
        "reason": "é\n\u2028\x00",
        "before": {"state": "candidate"},
        "effects": (
            Effect(file=PATTERN_FILE, type="error", pattern_id="pat-error-a-001", set={"override": {"n": 1.0}}),
        ),
    }
    return Decision(**(values | changes))


def _at(time: str) -> bytes:
    return json.dumps({"kind": "decision", "id": "x", "at": time, "by": "", "verb": "note", "subject": ""}).encode()


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    return ProjectPaths(tmp_path)


def test_a_decision_is_read_back_unchanged_in_another_process(paths: ProjectPaths) -> None:
    one, other = Ledger(paths), Ledger(paths)
    assert other.decisions() == ()
    one.append(made("d1"))
    assert one.decisions() == other.decisions() == (made("d1"),)
    other.append(made("d2"))
    assert [decision.id for decision in one.decisions()] == ["d1", "d2"]
    assert one.state() == other.state()
    assert "d2" in one
    assert one.decision("d2") == made("d2")
    with pytest.raises(UnknownRecord):
        one.decision("d3")


def test_effects_are_pending_until_marked_as_applied(paths: ProjectPaths) -> None:
    ledger, other = Ledger(paths), Ledger(paths)
    two = Effect(file="other.json", type="anti", pattern_id="x", insert={"pattern_id": "x"})
    ledger.append(made("d1", effects=(*made("d1").effects, two)))
    ledger.append(made("d2", effects=()))
    assert [(decision.id, file) for decision, file in ledger.pending()] == [("d1", PATTERN_FILE), ("d1", "other.json")]
    other.mark_applied({"d1": [PATTERN_FILE]})
    assert [(decision.id, file) for decision, file in ledger.pending()] == [("d1", "other.json")]


def test_lines_of_unknown_kinds_are_ignored(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    with paths.ledger.open("a") as file:
        file.write('{"kind":"seal","hash":"abc"}\n')
        newer = {"kind": "decision", "id": "d2", "at": "2026-05-03T12:00:00", "by": "x", "verb": "note"}
        file.write(json.dumps({**newer, "subject": "p", "mood": "good"}) + "\n")
    before = paths.ledger.read_bytes()
    ledger.append(made("d3"))
    assert paths.ledger.read_bytes().startswith(before)
    assert [decision.id for decision in ledger.decisions()] == ["d1", "d2", "d3"]
    assert ledger.decision("d2").at == CURATION_NOW
    assert {finding.code for finding in read_decisions(before)[1]} == {"not-as-written"}


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"\x00\x00", "bad-json"),
        (b"[]", "bad-json"),
        (b"\xff", "bad-json"),
        (b'{"kind":"decision","id":"\\ud800"}', "bad-json"),
        (b'{"a":' * 3000 + b"1" + b"}" * 3000, "too-deep"),
        (b'{"kind":"decision","before":' + b"[" * 64 + b"]" * 64 + b"}", "too-deep"),
        (b'{"a":1e999}', "bad-json"),
        (b'{"kind":"decision"}', "wrong-type"),
        (b'{"kind":"decision","id":"x","at":"never","by":"","verb":"note","subject":""}', "wrong-type"),
        (b'{"kind":"decision","id":"x","at":"2026-05-03","by":"","verb":"explode","subject":""}', "wrong-type"),
        (b'{"kind":"settled","decision":7,"files":"x"}', "wrong-type"),
        (_at("9999-12-31T23:59:59-23:59"), "bad-time"),
        (_at("0001-01-01T00:00:00+23:59"), "bad-time"),
    ],
)
def test_a_bad_line_is_a_finding_and_others_count(paths: ProjectPaths, line: bytes, code: str) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    with paths.ledger.open("ab") as file:
        file.write(line + b"\n")
    ledger.append(made("d2"))
    decisions, findings = read_decisions(paths.ledger.read_bytes() + b'{"torn')
    assert [decision.id for decision in decisions] == ["d1", "d2"]
    assert [(finding.code, finding.pointer) for finding in findings] == [(code, "line 2")]
    assert findings[0].file == paths.relative(paths.ledger)
    assert ledger.decisions() == decisions


def test_times_are_converted_to_utc(paths: ProjectPaths) -> None:
    decisions, findings = read_decisions(_at("2026-05-03T14:00:00+02:00") + b"\n")
    assert findings == ()
    assert decisions[0].at == CURATION_NOW
    assert decisions[0].at.utcoffset() == timedelta(0)


def test_a_duplicate_id_counts_once(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    ledger.append(made("d1", by="mallory"))
    decisions, findings = read_decisions(paths.ledger.read_bytes())
    assert [decision.by for decision in decisions] == ["alice"]
    assert [finding.code for finding in findings] == ["duplicate-id"]


def test_a_replaced_ledger_is_read_again(paths: ProjectPaths) -> None:
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    ledger.append(made("d2"))
    first = paths.ledger.read_bytes().splitlines(keepends=True)[0]
    paths.ledger.write_bytes(first)
    assert [decision.id for decision in ledger.decisions()] == ["d1"]
    paths.ledger.unlink()
    assert ledger.decisions() == ()
    assert ledger.state().pins == {}


def test_a_ledger_over_the_size_limit_or_outside_the_project_is_not_written(tmp_path: Path) -> None:
    paths = ProjectPaths(tmp_path / "project")
    paths.curation.mkdir(parents=True)
    ledger = Ledger(paths)
    ledger.append(made("d1"))
    os.truncate(paths.ledger, MAX_PATTERN_BYTES + 1)
    with pytest.raises(Unwritable, match="at most"):
        ledger.append(made("d2"))
    assert paths.ledger.stat().st_size == MAX_PATTERN_BYTES + 1
    paths.curation.rename(tmp_path / "aside")
    (tmp_path / "outside").mkdir()
    paths.curation.symlink_to(tmp_path / "outside")
    with pytest.raises(Unwritable, match="is outside"):
        Ledger(paths).append(made("d1"))
    assert list((tmp_path / "outside").iterdir()) == []


def test_a_decision_log_is_parsed_incrementally(paths: ProjectPaths) -> None:
    ledger, log = Ledger(paths), DecisionLog()
    ledger.append(made("d1"))
    log.read(first := paths.ledger.read_bytes())
    known = log.decisions[0]
    ledger.append(made("d2"))
    whole = paths.ledger.read_bytes()
    log.read(whole[:-3])
    assert log.decisions == (known,)
    log.read(whole)
    assert [decision.id for decision in log.decisions] == ["d1", "d2"] and log.decisions[0] is known
    log.read(whole + b"no json\n")
    assert [finding.pointer for finding in log.findings] == ["line 3"]
    log.read(first)
    assert log.decisions == (known,) and not log.findings
    log.read(b"")
    assert not log.decisions


def note(number: int) -> Decision:
    return Decision(
        id=f"d{number}", at=CURATION_NOW, by="alice", verb=Verb.NOTE, subject="p", after={"text": f"note {number}"}
    )


def document(number: int) -> bytes:
    return json.dumps({"kind": "note", "text": f"note {number}"}).encode()


@pytest.fixture
def ledger(paths: ProjectPaths) -> Ledger:
    found = Ledger(paths)
    for number in range(1, 5):
        found.append(note(number))
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


def test_the_first_decision_covers_lines_of_older_versions(paths: ProjectPaths) -> None:
    assert verify_ledger(paths).summary == "0 lines, 0 decisions: hash chain intact"
    paths.curation.mkdir(parents=True)
    paths.ledger.write_bytes(document(1) + b"\n" + document(2) + b"\n")
    assert "no hash chain yet" in verify_ledger(paths).summary
    Ledger(paths).append(note(3))
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
    Ledger(paths).append(note(5))
    assert problems_of(verify_ledger(paths)) == [(4, "was changed after it was written")]
    edit(paths, lambda lines: lines[:3])
    Ledger(paths).append(note(6))
    Ledger(paths).append(note(7))
    assert problems_of(verify_ledger(paths)) == [(4, "2 lines before it are missing")]
    assert [one.id for one in Ledger(paths).decisions()] == ["d1", "d2", "d3", "d6", "d7"]


def test_two_alternating_writers_and_a_crash_before_the_anchor_make_one_chain(
    paths: ProjectPaths, ledger: Ledger
) -> None:
    other = Ledger(paths)
    assert verify_ledger(paths).summary == "4 lines, 4 decisions: hash chain intact"
    for number in range(10, 14):
        (ledger if number % 2 else other).append(note(number), note(number * 10))
    assert verify_ledger(paths).summary == "12 lines, 12 decisions: hash chain intact"
    anchor = anchor_of(paths.ledger).read_bytes()
    ledger.append(note(5), note(6))
    anchor_of(paths.ledger).write_bytes(anchor)
    assert verify_ledger(paths).problems == ()
    Ledger(paths).append(note(7))
    assert verify_ledger(paths).problems == ()


@pytest.mark.parametrize("rest", [b'{"kind":', b'{"kind":"note"}'])
def test_an_incomplete_line_is_repaired_without_a_break(paths: ProjectPaths, ledger: Ledger, rest: bytes) -> None:
    with paths.ledger.open("ab") as file:
        file.write(rest)
    assert verify_ledger(paths).problems == ()
    Ledger(paths).append(note(5))
    foreign = [(5, "was not written by this program, or by an older version of it")]
    assert problems_of(verify_ledger(paths)) == (foreign if rest.endswith(b"}") else [])


def test_lines_without_a_hash_are_reported_once(paths: ProjectPaths, ledger: Ledger) -> None:
    with paths.ledger.open("ab") as file:
        file.write(document(5) + b"\n")
    ledger.append(note(6))
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
    ledger.append(note(5))
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
    ledger.append(note(5), note(6))
    assert found() == []
    whole = paths.ledger.read_bytes()
    edit(paths, lambda lines: [lines[0], lines[1].replace(b"note 2", b"note 7"), *lines[2:]])
    changed = ("line 2", "was changed after it was written")
    assert found() == [changed]
    ledger.append(note(7))
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


def head_of(paths: ProjectPaths) -> Head:
    end = verify_ledger(paths).end
    return Head(kind="ralphdeck-log-head", project="0123456789abcdef", lines=end.line, hash=end.chain, at=AT)


def compute_anew(paths: ProjectPaths, documents: list[bytes]) -> None:
    """What an editor does who knows the format: every hash and the anchor as if nothing had happened."""
    lines, end = link_lines(documents, Chain().place)
    paths.ledger.write_bytes(b"".join(line + b"\n" for line in lines))
    write_anchor(paths.ledger, end)


def test_a_recomputed_chain_is_detected_only_with_a_head(paths: ProjectPaths, ledger: Ledger) -> None:
    head = head_of(paths)
    documents = [strip_link(line) for line in paths.ledger.read_bytes().splitlines()]
    for changed, line, reason in (
        (
            [one.replace(b"note 2", b"note X") for one in documents],
            4,
            "does not fit: lines up to this one were rewritten",
        ),
        (documents[:3], 3, "was taken at line 4: 1 line after this one are missing"),
    ):
        compute_anew(paths, changed)
        assert verify_ledger(paths).problems == (), "the chain has no key: this edit leaves no trace in the project"
        (problem,) = verify_ledger(paths, [head]).problems
        assert (problem.line, problem.what) == (line, f"the head of 2026-05-03T12:00:00.000Z {reason}")
    paths.ledger.unlink()
    assert verify_ledger(paths, [head]).problems


def test_a_head_matches_every_continuation_of_the_log(paths: ProjectPaths, ledger: Ledger) -> None:
    heads = [head_of(paths)]
    Ledger(paths).append(note(5))
    heads += [head_of(paths), head_of(ProjectPaths(paths.project / "elsewhere"))]
    assert heads[-1].lines == 0
    Ledger(paths).append(note(6))
    found = verify_ledger(paths, heads)
    assert found.problems == () and found.summary.endswith("hash chain intact; contains 3 heads saved elsewhere")
    lines = paths.ledger.read_bytes().splitlines()
    compute_anew(paths, [strip_link(line) for line in lines[:5]] + [b'{"kind":"note"}'])
    assert verify_ledger(paths, heads).problems == (), "what came after the last head is not protected by it"
    assert len(verify_ledger(paths, [*heads, replace(heads[0], lines=3)]).problems) == 1


def test_a_head_is_one_line_of_json_that_reads_back(paths: ProjectPaths, ledger: Ledger) -> None:
    head = head_of(paths)
    assert head.encoded().count(b"\n") == 1
    assert set(msgspec.json.decode(head.encoded())) == {"kind", "project", "lines", "hash", "at"}
    assert read_heads(head.encoded(), "f") == (head,) == read_heads(msgspec.json.format(head.encoded()), "f")
    assert read_heads(head.encoded() * 2 + b"\n", "f") == (head, head)
    assert head.place == Place(4, head.hash)


def test_an_invalid_chain_head_is_refused() -> None:
    rows: list[bytes] = [
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
    ]
    for data in rows:
        with pytest.raises(BadInput, match=r"f (is empty|line 1 is not a head)"):
            read_heads(data, "f")


def test_the_head_of_another_project_is_refused(paths: ProjectPaths, ledger: Ledger) -> None:
    head = head_of(paths)
    check_project([head], head.project, "f")
    check_project([head], "", "f")
    check_project([replace(head, project="")], "f" * 16, "f")
    with pytest.raises(BadInput, match="f is the head of project 0123456789abcdef, and this is project ffff"):
        check_project([head], "f" * 16, "f")


def decide(number: int, verb: Verb, subject: str = "p", **after: Any) -> Decision:
    return Decision(
        id=f"d{number}",
        at=CURATION_NOW + timedelta(minutes=number),
        by="alice",
        verb=verb,
        subject=subject,
        reason="because",
        after=after,
    )


PROMOTE = decide(1, Verb.PROMOTE, content_hash="v1", successes=4, failures=1)
DEPRECATE = decide(2, Verb.DEPRECATE, content_hash="v2")


def test_the_last_pin_counts_and_undo_and_redo_restore_exactly() -> None:
    assert fold(()) == CurationState()
    pin = fold([PROMOTE]).pins["p"]
    assert (pin.state, pin.content_hash, pin.successes, pin.failures) == (Maturity.PROVEN, "v1", 4, 1)
    assert (pin.at, pin.by, pin.reason, pin.decision_id) == (PROMOTE.at, "alice", "because", "d1")
    assert fold([PROMOTE, DEPRECATE]).pins["p"].state is Maturity.DEPRECATED
    undone = [PROMOTE, DEPRECATE, decide(3, Verb.UNDO, "d2")]
    state = fold(undone)
    assert state.pins == fold([PROMOTE]).pins
    assert (state.undone, state.undoable, state.redoable) == (frozenset({"d2"}), ("d1",), ("d2",))
    redone = fold([*undone, decide(4, Verb.REDO, "d2")])
    assert replace(redone, acts={}) == replace(fold([PROMOTE, DEPRECATE]), acts={})
    state = fold([PROMOTE, decide(2, Verb.UNDO, "d1"), decide(3, Verb.NOTE, text="x")])
    assert (state.undone, state.undoable, state.redoable) == (frozenset({"d1"}), ("d3",), ()), "no redo after that"
    assert state.pins == {}


def test_only_a_text_that_a_person_released_becomes_guidance() -> None:
    release = decide(1, Verb.RELEASE, content_hash="v1")
    by_script = fold([replace(release, by="alice (script)")])
    assert by_script.approves("p", "v1") and not by_script.approves_as_guidance("p", "v1")
    assert fold([release]).approves_as_guidance("p", "v1")
    assert not fold([release, decide(2, Verb.QUARANTINE)]).approves_as_guidance("p", "v1")


def test_reset_removes_only_the_pin() -> None:
    state = fold([decide(1, Verb.ACCEPT_INVERSION, anti_id="pat-anti-a-001"), decide(2, Verb.RESET)])
    assert set(state.pins) == {"pat-anti-a-001"}
    assert state.inversions["p"].verdict == "accepted"
    assert state.inversions["p"].anti_id == "pat-anti-a-001"


def test_verdicts_follow_each_other() -> None:
    rejected = decide(1, Verb.REJECT_INVERSION, failures=5)
    snoozed = decide(2, Verb.SNOOZE, until="2026-06-01T00:00:00.000Z")
    assert fold([rejected]).inversions["p"].failures == 5
    assert fold([snoozed]).inversions["p"].verdict == "snoozed"
    both = fold([rejected, snoozed]).inversions["p"]
    assert (both.verdict, both.failures) == ("rejected", 5)
    assert both.until is not None
    assert fold([rejected, snoozed, decide(3, Verb.UNDO, "d2")]).inversions == fold([rejected]).inversions


def test_notes_collect_by_pattern() -> None:
    notes = [decide(1, Verb.NOTE, text="one"), decide(2, Verb.NOTE, "q", text="x"), decide(3, Verb.NOTE, text="two")]
    assert fold(notes).notes == {"p": (notes[0], notes[2]), "q": (notes[1],)}


def test_a_ledger_merged_by_hand_is_folded_safely() -> None:
    state = fold(
        [
            decide(1, Verb.UNDO, "nothing"),
            decide(2, Verb.REDO, "nothing"),
            PROMOTE,
            PROMOTE,
            decide(3, Verb.UNDO, "d1"),
            decide(4, Verb.UNDO, "d1"),
            decide(5, Verb.PROMOTE, "q", content_hash=7, successes="many", failures=-1),
        ]
    )
    assert state.undoable == ("d5",)
    pin = state.pins["q"]
    assert (pin.content_hash, pin.successes, pin.failures) == ("", 0, 0)
