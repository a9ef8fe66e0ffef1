"""The open project: index, reader, decisions, notifications and the daemon."""
