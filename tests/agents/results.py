"""The results of the last run of `poe agents`, in a file that the table in docs/agents.md is made from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, Final

FILE: Final = Path(__file__).parent / "results.json"
CHECKS: Final = {
    "test_connecting_is_accepted_and_changes_nothing_the_second_time": "connect",
    "test_all_hooks_fire_and_none_reports_an_error": "hooks",
    "test_a_session_that_gives_up_fails_and_one_that_fixes_the_test_succeeds": "outcome",
    "test_a_repeated_prompt_is_another_attempt_at_its_task": "attempts",
    "test_the_fix_is_learned_in_the_words_of_the_agent": "lesson",
    "test_a_similar_prompt_gives_the_lesson_to_the_model": "lesson at the prompt",
    "test_the_same_error_gives_the_known_fix_to_the_model": "known fix at the error",
    "test_the_use_of_the_lesson_is_counted": "use counted",
    "test_each_session_is_a_loop_with_its_tokens": "loops, tokens",
    "test_a_question_makes_no_task": "no task for a question",
    "test_removing_restores_all_files": "remove",
}
"""Tests of an agent and the columns that show their results."""


def read_results() -> dict[str, Any]:
    """Return the newest result of each agent: version, date, and the outcome of each test."""
    results: dict[str, Any] = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    return results


def write_results(outcomes: Mapping[str, Mapping[str, str]], versions: Mapping[str, str], day: date) -> None:
    """Replace the results of the agents of which all tests ran."""
    results = read_results()
    for agent, tests in outcomes.items():
        if tests.keys() == CHECKS.keys():
            results[agent] = {"version": versions[agent], "date": day.isoformat(), "outcomes": dict(tests)}
    ordered = {agent: results[agent] for agent in versions if agent in results}
    FILE.write_text(json.dumps(ordered, indent=2) + "\n", "utf-8")
