"""The widgets of the dashboard, one a file. They know records, not files."""
