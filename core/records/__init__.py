"""What one thing is: typed, immutable values without I/O. Everything in them is untrusted text."""
