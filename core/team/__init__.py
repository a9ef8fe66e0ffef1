"""One registry for a team: what is sent to a space on PostgreSQL, and what comes from it."""
