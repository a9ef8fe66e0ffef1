"""Debug memory: what agents ran, what failed, and which fix worked.

`index` finds sessions by key; `reports` summarizes them. `error_messages` and `runner_reports` parse errors;
`known_fixes` finds earlier fixes for them. `lessons` and `escalations` write what the hooks in `core.project` record;
`retention` and `archive` move old files to the archive and back.
"""
