"""Debug memory (4): what agents ran, what failed, why, and what fixed it.

`index` finds sessions by the keys of (4), `reports` counts over them. `hooks` is what agents call on success and on
escalation, `failures` on failure; `lessons` is what a session teaches, `escalations` what is kept around one that was
given up, `waiting` which sessions wait for a person. `retention` says how long a session is kept, `archive` moves it
out and back in.
"""
