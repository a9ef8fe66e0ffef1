"""Lifecycle of tasks and attempts: start, completion, derived files."""
