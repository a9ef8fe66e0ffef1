"""Debug memory (4): its index and queries, what it reports, how long it is kept, and what agents call."""
