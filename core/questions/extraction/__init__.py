"""Extraction of candidate patterns from a loop's records; docs/extraction.md.

`material` collects the records of a loop. `fixes` finds its errors and their fixes, in logs with `attempt_fixes`;
`triggers`, `changes` and `fix_kinds` judge them. `approaches` finds what worked or failed as a whole. `engine` drafts
patterns of all that, and compares them with the registry; `learnings` does so for recurring learnings and notes of
agents. `extractor` does it on request. `following` judges by the same logs (`recorded_work`) whether a lesson was
followed, and `strategies` which strategies of decomposition were used.
"""
