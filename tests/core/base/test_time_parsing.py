from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from core.base.errors import BadInput
from core.base.time_parsing import parse_past_time

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)


def test_a_date_means_its_start_or_its_end() -> None:
    assert parse_past_time("2026-11-15", NOW, end_of_day=False) == datetime(2026, 11, 15, tzinfo=UTC)
    assert parse_past_time("2026-11-15", NOW, end_of_day=True) == datetime(2026, 11, 15, 23, 59, 59, 999999, tzinfo=UTC)
    assert parse_past_time("2026-11-22", NOW, end_of_day=True) == NOW


def test_times_and_ages_are_parsed() -> None:
    assert parse_past_time("2026-11-15T09:00:00+02:00", NOW, end_of_day=True) == datetime(2026, 11, 15, 7, tzinfo=UTC)
    assert [parse_past_time(text, NOW, end_of_day=True) for text in ("36h", "7d", " 2w ")] == [
        NOW - timedelta(hours=36),
        NOW - timedelta(days=7),
        NOW - timedelta(days=14),
    ]


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "2026-11-23", "2026-11-22T10:01", "99999w", "1" * 100])
def test_invalid_and_future_times_are_refused(text: str) -> None:
    with pytest.raises(BadInput):
        parse_past_time(text, NOW, end_of_day=True)
