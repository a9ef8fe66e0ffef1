"""The headless core of ralphdeck: reading, scoring, curation and injection."""

__version__ = "0.1.0"
