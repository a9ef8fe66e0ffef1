"""Real agents, end to end, against scripted models (`poe agents`)."""
