"""Task and debug memory: what agents tried, what failed, and what fixed it.

Task memory (docs/task-memory.md): `protocol` is the entry point for agents; `lifecycle` creates tasks, and begins and
ends attempts; `action_log` and `reflections` write what they add. `task_files` has paths, locks and lookup. `history`
reads one task; `log_summary` derives failures and fixes from an action log, `attempts` decides whether an attempt runs
or was left unfinished, and replays it with the diffs of `changes`. `task_links` finds the loop of a task
and similar tasks. The search is `core.index.search`.

Debug memory (docs/task-memory.md#debug-sessions): `debug_index` finds sessions by key; `session_files` and `recorder`
write them. `error_messages` and `command_errors` parse errors; `known_fixes` ranks earlier fixes for them, which
`core.project.error_advice` renders for agents. `escalations` finds sessions that need a person. `archive` decides how
long files are kept, and moves them to the archive and back.
"""
