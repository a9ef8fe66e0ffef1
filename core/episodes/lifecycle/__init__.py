"""The steps of an attempt: creation, start, completion and what follows from the outcome."""
