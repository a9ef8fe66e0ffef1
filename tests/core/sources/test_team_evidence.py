"""Team evidence: the last line of a pattern is in effect, and invalid lines do not affect others."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.base.errors import Unwritable
from core.base.paths import ProjectPaths
from core.records.findings import Severity
from core.records.team import HeldUses, TeamEvidence, TeamSums
from core.sources.team_evidence import TeamEvidenceLog, TeamEvidenceWriter, encode_evidence

FILE = ".aiwg/ralph/shared/team/evidence.jsonl"
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
USED = EPOCH + timedelta(days=45)
SPACE = ("web", EPOCH, 45.0)
HEADER = {"kind": "space", "space": "web", "epoch": "2026-01-01T00:00:00Z", "half_life_days": 45}
SUMS = {"pattern_id": "p", "successes": 3, "failures": 1, "uses": 5, "helpful": 6, "harmful": 2, "undecayed": 4}
LINE = {**SUMS, "last_used": "2026-02-15T00:00:00Z"}


def read(data: bytes) -> TeamEvidenceLog:
    log = TeamEvidenceLog(FILE)
    log.read(data)
    return log


def text(*lines: Any) -> bytes:
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def make_sums(number: int, successes: int = 1) -> TeamSums:
    return TeamSums(
        pattern_id=f"pat-{number}",
        successes=successes,
        uses=successes,
        helpful=2.0 * successes,
        undecayed=successes,
        last_used=USED,
    )


def write(writer: TeamEvidenceWriter, *sums: TeamSums) -> int | None:
    return writer.update(*SPACE, sums)


sums_of_any_pattern = st.builds(
    lambda id, good, bad, open, shown, at: TeamSums(
        pattern_id=id,
        successes=good,
        failures=bad,
        uses=good + bad + open,
        injected_only=shown,
        helpful=good * 2.0 ** ((at - EPOCH) / timedelta(days=45)),
        harmful=bad * 2.0 ** ((at - EPOCH) / timedelta(days=45)),
        undecayed=good + bad,
        last_used=at,
    ),
    st.sampled_from("abcdef"),
    *([st.integers(0, 9)] * 4),
    st.datetimes(datetime(2000, 1, 1), datetime(2040, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
)


@given(st.lists(st.lists(sums_of_any_pattern, max_size=5), max_size=8))
def test_appended_and_rewritten_files_are_read_equal(batches: list[list[TeamSums]]) -> None:
    expected = {one.pattern_id: one for batch in batches for one in batch}
    expected = {id: one for id, one in expected.items() if not one.is_empty}
    log, data = read(text(HEADER)), text(HEADER)
    for batch in batches:
        data += b"".join([*encode_evidence(TeamEvidence(*SPACE, {str(n): one for n, one in enumerate(batch)}))][1:])
        log.read(data)
    assert log.evidence == read(data).evidence == TeamEvidence(*SPACE, expected)
    log.read(b"".join(encode_evidence(log.evidence)))
    assert log.evidence.sums == expected
    assert log.findings == ()


def test_a_line_that_is_not_complete_is_read_when_it_is() -> None:
    whole, log = text(HEADER, LINE), TeamEvidenceLog(FILE)
    for end in (10, len(text(HEADER)), len(whole) - 1):
        log.read(whole[:end])
        assert not log.evidence.sums and not log.findings
    log.read(whole)
    assert log.evidence.sums["p"].successes == 3


def test_evidence_that_was_read_does_not_change_with_the_file() -> None:
    log = read(text(HEADER, LINE))
    before = log.evidence
    log.read(text(HEADER, LINE, {"pattern_id": "p"}))
    assert "p" in before.sums and "p" not in log.evidence.sums
    assert before.changed_patterns(log.evidence) == {"p"}


def test_without_a_valid_first_line_no_sum_is_used() -> None:
    rows: list[bytes] = [
        b"",
        b"[1]",
        b'{"kind": "spice"}',
        json.dumps({**HEADER, "half_life_days": 0}).encode(),
        json.dumps({**HEADER, "half_life_days": -1}).encode(),
        b'{"kind":"space","space":"x","epoch":"2026-01-01T00:00:00Z","half_life_days":NaN}',
        json.dumps({**HEADER, "epoch": "2026-01-01T00:00:00"}).encode(),
        json.dumps({**HEADER, "space": ""}).encode(),
        b"\xff\xfe",
    ]
    for header in rows:
        log = read(header + b"\n" + text(LINE))
        assert log.evidence == TeamEvidence(), header
        assert [(one.pointer, one.code, one.severity) for one in log.findings] == [
            ("line 1", "bad-header", Severity.ERROR)
        ], header


def test_a_line_with_impossible_sums_is_a_finding_with_its_number() -> None:
    rows: list[bytes] = [
        b"[" * 100_000,
        b"null",
        b"{}",
        b'{"pattern_id": "q", "successes": -1}',
        b'{"pattern_id": "q", "successes": 1.5}',
        b'{"pattern_id": "q", "successes": true}',
        b'{"pattern_id": "q", "uses": 1e400}',
        b'{"pattern_id": "q", "uses": 99999999999999999999999999}',
        b'{"pattern_id": "q", "uses": 2000000000000000}',
        b'{"pattern_id": "q", "helpful": NaN}',
        b'{"pattern_id": "q", "helpful": -0.5}',
        b'{"pattern_id": "q", "uses": 1, "helpful": 1}',
        b'{"pattern_id": "", "uses": 1}',
        b'{"pattern_id": "q\xff", "uses": 1}',
        b'{"pattern_id": ["q"], "uses": 1}',
        json.dumps({"pattern_id": "q" * 501, "uses": 1}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "last_used": "2026-02-15T00:00:00"}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "last_used": "0001-01-01T00:00:00+14:00"}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "uses": 3}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "undecayed": 4.1}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "helpful": 6.1}).encode(),
        json.dumps({**LINE, "pattern_id": "q", "helpful": 1e308, "harmful": 1e308}).encode(),
        json.dumps(HEADER).encode(),
    ]
    for line in rows:
        log = read(text(HEADER) + line + b"\n" + text(LINE))
        assert [*log.evidence.sums] == ["p"], line
        assert [(one.file, one.pointer, one.code) for one in log.findings] == [(FILE, "line 2", "bad-sums")], line


def test_the_number_of_findings_of_a_file_is_limited() -> None:
    log = read(text(HEADER) + b"x\n" * 3000 + text(LINE))
    assert len(log.findings) == 1000 and "p" in log.evidence.sums


@pytest.fixture
def paths(tmp_path: Path) -> ProjectPaths:
    (tmp_path / ".aiwg/ralph").mkdir(parents=True)
    return ProjectPaths(tmp_path)


def test_only_changed_sums_are_appended_and_sums_without_a_use_removed(paths: ProjectPaths) -> None:
    writer = TeamEvidenceWriter(paths)
    assert write(writer, make_sums(1), make_sums(2)) == 2
    assert write(writer, make_sums(1), make_sums(2)) is None
    assert write(writer, make_sums(1), make_sums(2, 7), make_sums(3, 0)) == 1
    assert len(paths.team_evidence.read_bytes().splitlines()) == 4
    assert TeamEvidenceWriter(paths).read() == writer.read()
    assert writer.read().sums["pat-2"].successes == 7
    assert write(writer, TeamSums(pattern_id="pat-1")) == 1
    assert [*writer.read().sums] == ["pat-2"]


def make_held(member: str, successes: int = 8) -> HeldUses:
    return HeldUses(member=member, patterns=("pat-1",), successes=successes, failures=0, first=EPOCH, last=USED)


def test_held_results_are_in_no_sum_and_removed_when_they_are_decided(paths: ProjectPaths) -> None:
    writer = TeamEvidenceWriter(paths)
    writer.update(*SPACE, [make_sums(1)], [make_held("Carl"), make_held("Nora")])
    size = paths.team_evidence.stat().st_size
    writer.update(*SPACE, [], [make_held("Carl"), make_held("Nora", 9)])
    assert paths.team_evidence.stat().st_size < size + 200
    assert writer.read() == TeamEvidence(
        *SPACE, {"pat-1": make_sums(1)}, held=(make_held("Carl"), make_held("Nora", 9))
    )
    writer.update(*SPACE, [], [make_held("Carl")])
    assert TeamEvidenceWriter(paths).read().held == (make_held("Carl"),)
    writer.update(*SPACE, [], [])
    assert TeamEvidenceWriter(paths).read() == TeamEvidence(*SPACE, {"pat-1": make_sums(1)})


@pytest.mark.parametrize(
    "changes", [{"successes": -1}, {"patterns": 5}, {"first": "yesterday"}, {"last": "2026-02-15T00:00:00"}], ids=str
)
def test_an_invalid_line_about_held_results_is_a_finding(changes: dict[str, Any]) -> None:
    line = {"kind": "held", "member": "Carl", "patterns": ["p"], "successes": 8, "failures": 0}
    times = {"first": "2026-02-15T00:00:00Z", "last": "2026-02-15T00:00:00Z"}
    data = text(HEADER, {**line, **times, **changes}).replace(b'{"kind": "held"', b'{"kind":"held"')
    log = read(data + text(LINE))
    assert [finding.pointer for finding in log.findings] == ["line 2"]
    assert log.evidence.held == ()
    assert log.evidence.sums.keys() == {"p"}


def test_a_file_with_many_outdated_lines_is_rewritten(paths: ProjectPaths) -> None:
    writer = TeamEvidenceWriter(paths)
    for count in range(1, 150):
        write(writer, make_sums(1, count))
    assert len(paths.team_evidence.read_bytes().splitlines()) < 110
    assert writer.read() == TeamEvidenceWriter(paths).read() == TeamEvidence(*SPACE, {"pat-1": make_sums(1, 149)})


@pytest.mark.parametrize(
    "other", [("api", EPOCH, 45.0), ("web", EPOCH + timedelta(1), 45.0), ("web", EPOCH, 30.0)], ids=str
)
def test_sums_of_another_space_or_time_replace_the_file(
    paths: ProjectPaths, other: tuple[str, datetime, float]
) -> None:
    writer = TeamEvidenceWriter(paths)
    write(writer, make_sums(1), make_sums(2))
    new = TeamSums(pattern_id="pat-3", uses=1)
    writer.update(*other, [new])
    assert TeamEvidenceWriter(paths).read() == TeamEvidence(*other, {"pat-3": new})


def test_a_file_with_an_invalid_line_is_replaced(paths: ProjectPaths) -> None:
    writer = TeamEvidenceWriter(paths)
    write(writer, make_sums(1))
    assert writer.is_whole(*SPACE) and not writer.is_whole("api", EPOCH, 45.0)
    paths.team_evidence.write_bytes(paths.team_evidence.read_bytes() + b"x\n")
    assert not writer.is_whole(*SPACE)
    write(writer, make_sums(2))
    assert writer.is_whole(*SPACE) and [*writer.read().sums] == ["pat-2"]


def test_two_writers_see_the_lines_of_each_other(paths: ProjectPaths) -> None:
    one, two = TeamEvidenceWriter(paths), TeamEvidenceWriter(paths)
    write(one, make_sums(1))
    write(two, make_sums(2))
    write(one, make_sums(3))
    two.remove()
    write(one, make_sums(4))
    assert [*one.read().sums] == [*two.read().sums] == ["pat-4"]


def test_nothing_is_written_through_a_link(paths: ProjectPaths, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    paths.team.parent.mkdir()
    paths.team.symlink_to(other)
    with pytest.raises(Unwritable):
        write(TeamEvidenceWriter(paths), make_sums(1))
    assert not [*other.iterdir()]


def test_what_is_left_after_subtracting_all_uses_is_nothing() -> None:
    one = TeamSums(pattern_id="p", successes=2, uses=2, helpful=0.1 + 0.2, undecayed=2, injections=0.3, last_used=USED)
    left = one - TeamSums(pattern_id="p", successes=2, uses=2, helpful=0.3, undecayed=2, injections=0.1)
    assert left == TeamSums(pattern_id="p", last_used=USED) and left.is_empty
    assert (one + one) - one == one


def test_nothing_outside_of_the_project_is_removed(paths: ProjectPaths, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / paths.team_evidence.name).write_text("precious")
    paths.team_evidence.parent.parent.mkdir(parents=True, exist_ok=True)
    paths.team_evidence.parent.symlink_to(outside)
    with pytest.raises(Unwritable):
        TeamEvidenceWriter(paths).remove()
    assert [one.name for one in outside.iterdir()] == [paths.team_evidence.name]
