"""Helpers without domain knowledge: errors, text, validation, time parsing, ID lookup, diffs."""
