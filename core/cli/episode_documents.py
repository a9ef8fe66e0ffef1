"""The keys of what the commands of the episodic memory print with `--json`; see `core.cli.shapes`."""

from __future__ import annotations

from typing import Final

EPISODE_DOCUMENTS: Final[dict[str, str]] = {
    "task init": """\
{id}""",
    "task start": """\
{id, attempt, resumed, plan_path, plan, learnings: [{attempt, outcome, reason, plan, worked, failed, suggestions,
reflections: [{attempt, at, kind, trigger, observation, analysis, learning, actions, draft}]}]}""",
    "task log": """\
{id, attempt, added, actions}""",
    "task complete": """\
{id, attempt, outcome, derived, status, actions, errors, iterations,
reflections: [{attempt, at, kind, trigger, observation, analysis, learning, actions, draft}]}""",
    "task reflect": """\
{reflection: {attempt, at, kind, trigger, observation, analysis, learning, actions, draft}}""",
    "task pause": """\
{id, status}""",
    "task list": """\
{tasks: [{id, description, criteria, status, raw_status, created_at, updated_at, completed_at, current_attempt,
total_attempts, tags, related, agent, loop_id, file, attempts, last_outcome, open_attempt, open_state}], findings}""",
    "task similar": """\
{similar: [{id, description, score, matched_by, outcome, learnings: [{attempt, text}]}], findings}""",
}
"""By the name of the command; taken up by `core.cli.shapes.DOCUMENTS`."""
