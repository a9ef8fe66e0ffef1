"""The open project: reading, decisions, notifications and unattended watching."""
