"""Speed measured on generated projects: `python -m tests.bench`. Reports values and asserts nothing."""
