"""Registry of a team: what is sent to a space on PostgreSQL and received."""
