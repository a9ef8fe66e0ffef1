"""What lists and pages show, once for the terminal, screens, agents and files.

Each list has its columns, sorts and cells in one module: `patterns`, `loops`, `reflections`, `decisions` (the log) and
`comparison`. The fields of its filter are there, too, but those of patterns are in `pattern_filter` and those of loops
in `work`. `pages` has the page of one record, `metrics` all figures, `cards` the questions of Review.
"""
