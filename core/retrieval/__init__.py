"""Which patterns fit a task, and the text that a loop gets."""
