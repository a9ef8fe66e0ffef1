"""Serves a project to agents over the Model Context Protocol (docs/agents.md#mcp-server)."""
