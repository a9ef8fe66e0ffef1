"""Export and import of patterns between projects; see docs/curation.md#import-and-export."""
