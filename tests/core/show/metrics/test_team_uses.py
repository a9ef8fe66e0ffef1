"""The uses of all projects of a team in the metrics."""

from __future__ import annotations

from datetime import UTC, datetime

from core.records.team import PooledTrials, ProjectUses, TeamStatus
from core.show.metrics.sections import count_team_uses, describe_pool, describe_team_uses

AT = datetime(2026, 11, 23, 12, 3, tzinfo=UTC)
STATUS = TeamStatus(
    space="shop",
    uses=(
        ProjectUses("web", {4: (1, 2, 3), 12: (10, 2, 14), 52: (20, 2, 30)}),
        ProjectUses("api\x1b[31m", {4: (0, 0, 0), 12: (30, 1, 31), 52: (30, 1, 31)}),
        ProjectUses("unused", {4: (0, 0, 0), 12: (0, 0, 0), 52: (0, 0, 0)}),
    ),
    uses_at=AT,
)


def test_projects_with_most_uses_come_first_after_the_whole_team() -> None:
    found = describe_team_uses(STATUS, 12)
    assert found["takeaway"] == (
        "45 uses in 2 of 3 projects in 12 weeks: 40 worked, 3 failed; as of 2026-11-23 12:03 UTC"
    )
    assert found["rows"] == [
        ("all projects", (40, 3), 45),
        ("api␛[31m", (30, 1), 31),
        ("web", (10, 2), 14),
    ]


def test_another_range_is_counted_in_the_next_longer_known_one() -> None:
    assert [count_team_uses(STATUS, weeks)[0] for weeks in (1, 4, 5, 52, 100)] == [4, 4, 12, 52, 52]


def test_a_single_project_has_no_row_for_the_team() -> None:
    assert [label for label, *_ in describe_team_uses(STATUS, 4)["rows"]] == ["web"]


def test_a_team_without_uses_has_no_rows() -> None:
    empty = TeamStatus(space="shop", uses=(ProjectUses("web", {4: (0, 0, 0)}),), uses_at=AT)
    assert describe_team_uses(empty, 4) == {
        "takeaway": "No use in 1 project of the team in 4 weeks; as of 2026-11-23 12:03 UTC"
    }


def test_trials_of_the_team_have_a_verdict_of_their_own() -> None:
    cells = ((0.5, 10, False, False, 40), (0.5, 10, True, True, 30), (0.5, 10, True, False, 10))
    pool = PooledTrials("pat-error-vat-001", "returned", 3, 2, cells)
    assert describe_pool(pool) == "3 projects, given: error in 0 of 40 tasks; held out: error in 30 of 40; helps"
    far = PooledTrials("pat-error-vat-001", "succeeded", 1, 1, cells)
    assert describe_pool(far) == "1 project, given: success in 0 of 40 tasks; held out: success in 30 of 40; hurts"
