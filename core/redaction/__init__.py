"""Secrets in texts: patterns that find them, and masks that replace them."""
