"""The keys of what `ralphdeck debug …` prints with `--json`; see `core.cli.json.shapes`."""

from __future__ import annotations

from typing import Final

_SESSIONS: Final = """\
{sessions: [{id, status, escalated, escalated_at, call: {at, by, reason, context}, file_path, runs,
failing, error_types, causes, changed_at, loop_id, task_id, agent, file, pointer}], findings}"""

DEBUG_DOCUMENTS: Final = {
    "debug list": _SESSIONS,
    "debug similar": _SESSIONS,
    "debug escalations": _SESSIONS,
    "debug show": """\
{session: {id, status, escalated, escalated_at, call: {at, by, reason, context}, file_path, runs, failing,
error_types, causes, changed_at, loop_id, task_id, agent, file, pointer, created_at, iteration,
executions: [{attempt, at, code_hash, code, environment,
results: {total, passed, failed, errors, skipped, duration_ms, coverage},
failures: [{error_type, message, source, line, function, test_name, test_file, test_line, stack_trace,
expected, actual}], analysis: {root_cause, category, strategy, confidence, related, similar},
fix: {description, diff, diff_summary, files, verified, held}}],
patterns_identified: [{pattern, category, frequency, fix_template, effectiveness,
fixes: {held, failed, rate, interval}}],
recurring_failures: [{test, occurrences, resolution, notes}],
code_quality_issues: [{issue, location, severity, addressed}], recommendations}, findings}""",
    "debug templates": """\
{templates: [{pattern, category, fix_template, effectiveness, claimed, fixes: {held, failed, rate, interval},
session_ids}], findings}""",
    "debug causes": """\
{causes: [{category, sessions, passing, failing, fixes: {held, failed, rate, interval}}],
recurring: [{test, runs, session_ids, claimed, resolution}], findings}""",
    "debug failure": """\
{error: {error_type, message, source, line, function, test_name, test_file, test_line, stack_trace, expected,
actual}, errors: [{as error}], fixes: [{session, source, message, cause, category, strategy, fix, held,
results: {held, failed, rate, interval}, failed, alike, same_file}],
templates: [{pattern, category, fix_template, effectiveness, claimed,
fixes: {held, failed, rate, interval}, session_ids}],
patterns: [{id, title, error_pattern, description, state, success_rate, usage_count}], text, findings}""",
    "debug success": """\
{session_id, file, bead, applied, lessons: [{pattern, category, frequency, fix_template, effectiveness}],
lessons_written, file_changed, problem, records: [as in record], extraction: {as in extract},
decided: {decision, summary, warnings, written}, warnings}""",
    "debug escalate": """\
{session_id, file}""",
    "debug archive-expired": """\
{moved: [{from, to, session_ids}], warnings}. With --dry-run:
{plan: [{file, due, terms: [{id, status, rule, days, until}]}]}""",
    "debug restore": """\
{moved: [{from, to, session_ids}], others}""",
    "debug archived": """\
{archived: [{id, status, file_path, changed_at, file, at, by}], findings}""",
}
"""By the name of the command."""
