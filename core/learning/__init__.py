"""Pure functions of (records, settings, now): evidence, maturity, inversion, statistics. No I/O, no clock."""
