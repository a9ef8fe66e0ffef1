"""What lists and pages show, stated once for the terminal, the screens, agents and files."""
