"""Connects coding agents to a project (docs/agents.md)."""
