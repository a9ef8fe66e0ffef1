"""Pure functions from records to styled text. No widget, no file; tested as strings."""
