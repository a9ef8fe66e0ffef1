"""Rules that find questions for the review queue."""
