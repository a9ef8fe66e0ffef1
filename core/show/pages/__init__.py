"""Neutral documents: what a record contains, without any layout.

All text in a document is untrusted; the renderers make it harmless.
"""
