"""Metrics: effect of shared patterns, upcoming changes, review of patterns."""
