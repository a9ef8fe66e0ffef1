"""Episodic memory, headless: the agent protocol, histories, replay and what was learned (1)."""
