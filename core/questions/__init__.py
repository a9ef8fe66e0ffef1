"""Review queue, answers and review sessions; see docs/curation.md#review."""
