"""Trusted projects, and the user's own records (docs/safety.md#origin)."""
