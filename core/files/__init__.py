"""Files on disk: safe reading, atomic writing, locks, append-only logs, watching."""
