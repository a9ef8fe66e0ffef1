"""Recorded sessions in which a check fails, and figures for the lessons that are extracted from them."""
