"""Neutral documents: what a record contains, without any layout.

A builder words each fact once. All text in a document is untrusted; the renderers make it harmless.
"""
