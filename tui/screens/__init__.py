"""The places and dialogs, one a file: they compose widgets and handle messages, and hold no arithmetic."""
