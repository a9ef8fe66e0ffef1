"""Export and import of patterns; see docs/curation.md#import-and-export."""
