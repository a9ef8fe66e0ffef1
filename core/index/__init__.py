"""One derived database per project; see docs/architecture.md#index."""
