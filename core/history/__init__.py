"""A project at a past moment, and what changed between two moments."""
