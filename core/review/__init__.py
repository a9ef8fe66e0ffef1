"""What a person should decide next: the kinds of questions, their order, how long they take (semantics 4, 5)."""
