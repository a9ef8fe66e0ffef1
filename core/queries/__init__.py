"""The filter language for patterns and for the episodic memory."""
