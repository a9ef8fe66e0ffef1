"""Debug memory: test runs of agents, their failures, and the fixes that worked.

`core.index.debug_sessions` finds sessions by key, and `reports` summarizes them. `error_messages` and `runner_reports`
parse errors; `known_fixes` finds earlier fixes for them. `lessons` and `escalations` write lessons and escalations for
the hooks in `core.project`. `retention` decides how long files are kept; `archive` moves them to the archive and back.
"""
