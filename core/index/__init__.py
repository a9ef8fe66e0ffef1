"""One derived database per project, filled by one function and read by all; see docs/architecture.md#index."""
