"""Metrics: effectiveness of patterns, upcoming changes, and review coverage."""
