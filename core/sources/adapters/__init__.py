"""Adapters: read-only access to the files of agents and of other runners of loops (docs/adapters.md)."""
