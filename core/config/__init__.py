"""Paths, settings and thresholds of a project."""
