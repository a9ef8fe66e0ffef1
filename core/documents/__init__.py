"""Neutral documents: what a record contains, before the terminal, the CLI or Markdown lays it out.

A builder words each fact once. All text in a document is untrusted; the renderers make it harmless.
"""
