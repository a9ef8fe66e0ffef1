"""Patterns that leave a project and come into it (0) Share Patterns Across Teams."""
