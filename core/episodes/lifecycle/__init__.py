"""The lifecycle of tasks and attempts: creation, start, completion, reflection and derived files."""
