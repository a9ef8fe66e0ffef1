"""Filter patterns, loops, reflections, decisions and task memory by text that the user types."""
