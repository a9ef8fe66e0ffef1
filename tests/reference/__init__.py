"""Pages of `docs/` and files of the plugin that are generated from the code."""
