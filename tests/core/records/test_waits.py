"""What a waiting loop waits for."""

from __future__ import annotations

from typing import Any

import pytest

from core.records.loops import Loop, LoopStatus
from core.records.waits import waits_for


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("raw_status", "permission_prompt", "permission"),
        ("raw_status", "waiting-for-approval", "permission"),
        ("raw_status", "AskUserQuestion", "question"),
        ("raw_status", "waiting_for_input", "question"),
        ("raw_status", "asking_questions", "question"),
        ("raw_status", "blocked", "blocked"),
        ("end_reason", "GUTTER deferred", "blocked"),
        ("end_reason", "api_limit", "rate limit"),
        ("liveness_reason", "its session claude:a: rate limit until 10:00", "rate limit"),
        ("raw_status", "usage_limited", "rate limit"),
        ("raw_status", "waiting", "person"),
    ],
)
def test_the_reason_of_a_waiting_loop_is_in_its_own_words(field: str, text: str, expected: str) -> None:
    fields: dict[str, Any] = {field: text}
    assert waits_for(Loop(id="a", status=LoopStatus.WAITING, **fields)) == expected


@pytest.mark.parametrize("status", sorted(set(LoopStatus) - {LoopStatus.WAITING}))
def test_a_loop_with_another_status_waits_for_nothing(status: LoopStatus) -> None:
    assert waits_for(Loop(id="a", status=status, raw_status="permission")) == ""
