"""Filter patterns, loops, reflections, decisions and the task memory."""
