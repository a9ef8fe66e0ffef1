"""Filters of patterns, loops, reflections, decisions and task memory."""
