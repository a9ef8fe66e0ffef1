"""Episodic memory, headless (1): the agent protocol that writes `tasks/`, histories, replay, and what was learned.

What an agent calls: `protocol`. Its steps: `initializing` (a task), `starting` and `completing` (an attempt),
`action_log`, `propagating` (what follows from an outcome, file by file). What these write: `planning` (plan.md),
`reflecting` (drafts), `indexing` (by status and agent). Below them: `folders` (places and locks), `json_files` (edits
that lose nothing), `strict_reader` (refuses a wrong file), `arguments` (checks what is given).

What readers call: `history` (one task, one attempt), `replay` and `diffs` (step by step), `export` (Markdown),
`searching`, `matching` and `search_words`, `names` (which task is meant), `condition` (whether anybody works at it).

What it amounts to: `log_summary` and `commands` (one log), `linking` (which loop a task records), `similar` (past tasks
like one), `measure_improvement` (retries against first attempts), `success_metrics`.
"""
