"""Project states of the past, and comparison of two states."""
