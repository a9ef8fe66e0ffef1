"""What a person decides: ledger, decisions, undo, review queue."""
