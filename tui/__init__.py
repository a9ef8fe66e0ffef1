"""Dashboard of ralphdeck: a Textual app over the headless core."""
