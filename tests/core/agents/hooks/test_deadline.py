"""A hook ends if it costs too much or takes too long, and doctor can count that."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from core.agents.agent_table import Moment
from core.agents.hooks import deadline
from core.agents.hooks.deadline import (
    ANSWER_SECONDS,
    OTHER_SECONDS,
    PROCESSOR_SECONDS,
    PROMPT_SECONDS,
    Deadline,
    count_give_ups,
    record_give_up,
)
from core.base.paths import ProjectPaths
from tests.core.agents.hooks.agents import START


@dataclass
class Clocks:
    """A deadline whose clocks are set by the test."""

    elapsed: float = 100.0
    processor: float = 0.2
    reasons: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.deadline = Deadline(self.reasons.append, elapsed=lambda: self.elapsed, processor=lambda: self.processor)


def test_a_busy_machine_delays_a_prompt_longer_than_other_events() -> None:
    for moment, seconds in ((Moment.PROMPT, PROMPT_SECONDS), (Moment.TOOL, OTHER_SECONDS)):
        clocks = Clocks()
        clocks.deadline.set_moment(moment)
        clocks.elapsed += seconds - 0.1
        clocks.deadline.check()
        assert not clocks.reasons
        clocks.elapsed += 0.1
        clocks.deadline.check()
        assert len(clocks.reasons) == 1 and "busy" in clocks.reasons[0]


def test_processor_time_is_limited_whatever_time_has_passed() -> None:
    clocks = Clocks(processor=PROCESSOR_SECONDS)
    clocks.deadline.check()
    clocks.deadline.check()
    assert len(clocks.reasons) == 1 and "too much processor time" in clocks.reasons[0]


def test_an_answer_that_is_complete_gets_time_to_be_sent() -> None:
    clocks = Clocks()
    clocks.elapsed += PROMPT_SECONDS - 0.1
    clocks.deadline.begin_answer()
    clocks.processor = PROCESSOR_SECONDS
    clocks.elapsed += ANSWER_SECONDS - 0.1
    clocks.deadline.check()
    assert not clocks.reasons
    clocks.elapsed += 0.2
    clocks.deadline.check()
    assert clocks.reasons


def test_hooks_that_gave_up_are_counted_by_reason_for_a_week(project: ProjectPaths) -> None:
    assert count_give_ups(project, START) == {}
    record_give_up(project, "claude", "Stop", "long ago", START - timedelta(days=8))
    for seconds in (6.1, 6.2):
        record_give_up(project, "claude", "UserPromptSubmit", f"the machine is busy ({seconds} s)", START)
    record_give_up(project, "codex", "Stop", "locked", START)
    assert count_give_ups(project, START) == {"the machine is busy": 2, "locked": 1}


def test_the_log_keeps_the_newest_lines_and_ignores_damaged_ones(
    project: ProjectPaths, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deadline, "_MAX_BYTES", 1000)
    for number in range(100):
        record_give_up(project, "claude", "Stop", f"reason {number}", START)
    (log,) = project.sessions.glob("*.jsonl")
    assert log.stat().st_size < 1100
    log.write_bytes(b"{\n\xff\n[]\n" + log.read_bytes())
    counts = count_give_ups(project, START)
    assert "reason 99" in counts and "reason 0" not in counts
