"""The learning API for other programs: observed patterns, maturity, and storages; docs/learning-api.md.

ralphdeck itself works on the records of a project instead. Both share the scoring functions of `core.learning`.
"""
