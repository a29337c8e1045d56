"""Training of every family's tokenizer from text, run from a checkout."""
