"""Reusable widgets of the dashboard. They do not access files."""
