"""Candidate patterns from what loops, tasks and debug sessions leave behind; docs/extraction.md."""
