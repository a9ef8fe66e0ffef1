"""The learning API for other programs; docs/learning-api.md.

ralphdeck itself works on the records of a project instead. Both share the scoring functions of `core.learning`.
"""
