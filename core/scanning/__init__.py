"""Safety scan: finds texts that could harm an agent that reads them (docs/safety.md). Pure functions."""
