"""Read-only access to files of agents and other loop runners; docs/adapters.md."""
