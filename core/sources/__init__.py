"""From bytes to records and back: reading, dialects, watching, cache, writing, journal."""
