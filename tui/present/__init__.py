"""Pure functions from records to styled text: no widget, no file."""
