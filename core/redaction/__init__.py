"""Redaction of secrets: patterns that find them in texts, and masks for them."""
