"""What a text would do to an agent that reads it. Pure: texts in, suspicions out."""
