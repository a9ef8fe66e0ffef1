"""Whose word counts: trusted projects, and which records this user's program wrote (docs/safety.md#origin)."""
