"""Typed, immutable records without I/O. Every text in them is untrusted."""
