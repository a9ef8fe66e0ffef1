"""The screens and dialogs: they compose widgets and handle messages."""
