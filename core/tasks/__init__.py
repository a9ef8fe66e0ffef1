"""Task memory and debug memory: what agents tried, what failed, and what fixed it.

Task memory (docs/task-memory.md): `protocol` is the entry point for agents, `lifecycle` has its steps; `action_log`,
`reflections` and `task_indexes` write the files. `history` reads one task or attempt, `replay` and `diffs` show its
steps, `search` finds records. `loop_links` assigns tasks to loops, `similar_tasks` compares tasks.

Debug memory (docs/task-memory.md#debug-sessions): `debug_index` finds sessions by key, and `reports` summarizes them.
`error_messages` and `runner_reports` parse errors; `known_fixes` finds earlier fixes for them. `retention` decides how
long files are kept; `archive` moves them to the archive and back.
"""
