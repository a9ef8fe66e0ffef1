"""Selection of patterns and learnings for a task, and rendering of the context."""
