"""Safety scan: finds texts that could harm an agent (docs/safety.md)."""
