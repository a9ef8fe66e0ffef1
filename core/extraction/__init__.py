"""What a finished loop has learned: from its errors, fixes, steps and failures to patterns (0)."""
