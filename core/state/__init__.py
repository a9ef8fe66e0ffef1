"""The state of an open project at one moment: records, scores, indexes and pending questions."""
