"""Task memory: tasks, attempts, actions and reflections (docs/task-memory.md).

Writing: `protocol` is the entry point for agents; `lifecycle` contains its steps; `action_log`, `reflections` and
`task_indexes` write the files. `validation` checks arguments, `folders` and `json_files` access files, and
`strict_reader` raises an error for a file that cannot be parsed.

Reading: `history` reads one task or attempt, `replay` and `diffs` show its steps, `search` finds records, `task_lookup`
resolves IDs, and `attempt_state` decides whether an attempt is running. `log_summary` and `commands` summarize a log.
`loop_links` assigns tasks to loops, `similar_tasks` compares tasks, and `success_metrics` measures results.
"""
