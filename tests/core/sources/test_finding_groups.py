"""Similar findings are reported once, with their number."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from core.records.findings import Finding, Severity
from core.sources.finding_groups import MAX_UNGROUPED, FileFindings

FILES = tuple(f".aiwg/ralph/tasks/task-{number}/{name}.json" for number in range(9) for name in ("metadata", "state"))


def make_finding(file: str, pointer: str = "/0/name") -> Finding:
    return Finding(file, pointer, Severity.WARNING, "wrong-type", "'a' is not a number")


def collect(content: Mapping[str, tuple[Finding, ...]]) -> tuple[Finding, ...]:
    found = FileFindings()
    for file, findings in content.items():
        found.replace(file, findings)
    return found.condensed()


def test_similar_findings_of_files_with_one_name_are_condensed() -> None:
    content = {file: (make_finding(file),) for file in FILES[::2]}
    (found,) = collect(content)
    assert found.count == len(content)
    assert found.file == FILES[0]


def test_findings_on_whole_files_are_listed_separately() -> None:
    content = {file: (make_finding(file, ""),) for file in FILES[::2]}
    assert len(content) > MAX_UNGROUPED
    assert len(collect(content)) == len(content)


@given(
    st.lists(
        st.tuples(st.sampled_from(FILES), st.lists(st.sampled_from(("", "/0/name", "/1/name", "/size")), max_size=3))
    )
)
def test_replaced_findings_equal_those_of_the_last_contents(changes: list[tuple[str, list[str]]]) -> None:
    updated = FileFindings()
    last: dict[str, tuple[Finding, ...]] = {}
    for file, pointers in changes:
        last[file] = tuple(make_finding(file, pointer) for pointer in pointers)
        updated.replace(file, last[file])
        assert sorted(updated.condensed(), key=str) == sorted(collect(last), key=str)
