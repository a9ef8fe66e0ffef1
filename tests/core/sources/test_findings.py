"""Similar findings are reported once, with their number."""

from __future__ import annotations

from core.records.findings import Finding, Severity
from core.sources.parsed_file import MAX_FINDINGS, MAX_UNGROUPED, condense, condense_files

FILES = tuple(f".aiwg/ralph/tasks/task-{number}/metadata.json" for number in range(9))


def make_finding(file: str, pointer: str = "/0/name") -> Finding:
    return Finding(file, pointer, Severity.WARNING, "wrong-type", "'a' is not a number")


def test_similar_findings_of_files_with_one_name_are_condensed() -> None:
    (found,) = condense_files(map(make_finding, FILES))
    assert found.count == len(FILES)
    assert found.file == FILES[0]


def test_few_similar_findings_are_listed_separately() -> None:
    assert len(condense_files(map(make_finding, FILES[:MAX_UNGROUPED]))) == MAX_UNGROUPED


def test_findings_on_whole_files_are_listed_separately() -> None:
    assert len(condense_files(make_finding(file, "") for file in FILES)) == len(FILES) > MAX_UNGROUPED


def test_the_number_of_findings_of_a_file_is_limited() -> None:
    *listed, more = condense(make_finding(FILES[0], f"/{'x' * n}") for n in range(MAX_FINDINGS + 3))
    assert len(listed) == MAX_FINDINGS
    assert (more.file, more.code, more.message.split()[0]) == (FILES[0], "more-findings", "3")
