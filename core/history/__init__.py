"""Past states of a project, and comparison of two states."""
