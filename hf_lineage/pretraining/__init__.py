"""Pretraining of the families: corpora, examples, optimizers and the training command (needs the extra `train`)."""
