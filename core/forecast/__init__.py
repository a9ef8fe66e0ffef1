"""Dry runs, forecasts of decisions, and policies."""
