"""The consequences of a decision before it is made: dry runs, bulk previews and policies."""
