"""MCP server of a project (Model Context Protocol, docs/agents.md#mcp-server)."""
