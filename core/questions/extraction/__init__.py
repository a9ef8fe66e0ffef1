"""Extraction of candidate patterns; docs/extraction.md."""
