"""Parse record files into typed records and join them."""
