"""The keys of what the commands of the episodic memory print with `--json`; see `core.cli.json.shapes`."""

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
{id, attempt, outcome, derived, again, status, actions, errors, iterations,
reflections: [{attempt, at, kind, trigger, observation, analysis, learning, actions, draft}]}""",
    "task reflect": """\
{reflection: {attempt, at, kind, trigger, observation, analysis, learning, actions, draft}}""",
    "task pause": """\
{id, status}""",
    "task list": """\
{tasks: [{id, description, criteria, status, raw_status, created_at, updated_at, completed_at, current_attempt,
total_attempts, tags, related, agent, loop_id, file, state, attempts, last_outcome, open_attempt, open_state,
open_reason}], findings}""",
    "task similar": """\
{similar: [{id, description, score, matched_by, outcome, learnings: [{attempt, text}]}], findings}""",
    "task report": """\
{tasks, improvement: {first: {successes, failures, rate, interval}, with_reflections: as first,
without_reflections: as first, against_first: {tells, difference, interval, relative, needed},
against_without: the same keys, level}, left_out: {running, paused, left, unclear},
metrics: {tracking_coverage: {met, loops, tracked, remembered, missing, share, links: [{task, loop, how}]},
read_latency: {met, limit_ms, tasks, median_ms, slowest_ms, slowest_task},
retry_improvement: {met, target, difference, interval},
audit_trail: {met, ended, complete, without_actions, without_outcome, without_reflection}}, findings}""",
    "history": """\
{task: {id, description, criteria, status, raw_status, created_at, updated_at, completed_at, current_attempt,
total_attempts, tags, related, agent, loop_id, file}, attempts: [{id, task_id, number, started_at, ended_at, open,
outcome, reason, plan, agent, iterations, actions, errors, last_action_at, quality: [{iteration, quality, delta}],
final_quality, completion, worked, failed, suggestions, file, plan_text, plan_steps, estimated_iterations, results,
log: [{number, at, iteration, type, tool, params: [{name, text}], success, output, error, reasoning, expected}]}],
milestones: [{at, event, details, attempt}], final_quality, completion, summary: [{name, text}],
reflections: [as in reflections], findings}.
With an attempt: {attempt: {id to file, as in attempts}, plan_text, plan_steps, estimated_iterations,
actions: [as in log], results, milestones, reflections, findings}.
With --reflections: {reflections, findings}""",
    "replay": """\
{attempt: {as in history}, steps: [{number, at, iteration, type, tool, params: [{name, text}], success, output,
error, reasoning, expected, verdict: succeeded, failed or unknown, real, elapsed: seconds since the start, pause:
seconds to the next one, begins_iteration, quality, diff}], findings}""",
    "search": """\
{hits: [{in, task_id, attempt, action, subject, at, snippet, file, pointer}], total, findings}""",
}
"""By the name of the command; taken up by `core.cli.json.shapes.DOCUMENTS`."""
