"""The log of decisions: reading, folding into a state, and verification."""
