"""The budget, measured on generated trees: `python -m tests.bench`. Nothing here asserts."""
