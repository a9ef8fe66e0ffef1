"""Decisions of reviewers: commands, rules, undo, import and export."""
