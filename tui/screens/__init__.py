"""The screens and dialogs, one a file: they compose widgets and handle messages, without arithmetic."""
