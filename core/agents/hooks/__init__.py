"""Answers the hook events of coding agents (docs/agents.md#hooks)."""
