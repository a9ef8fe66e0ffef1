"""The state of an open project at one moment."""
