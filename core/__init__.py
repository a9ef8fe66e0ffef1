"""The headless core of ralphdeck: reading, scoring, curation and injection."""

__version__ = "0.2.0"
