"""Helpers without domain knowledge: errors, text, validation, times, IDs, diffs."""
