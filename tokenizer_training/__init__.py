"""Training of every family's tokenizer from text."""
