"""Search in the task memory, by a full-text index or by a scan of the files."""
