"""The review queue: questions, their order, their answers, and review sessions; see docs/curation.md#review."""
